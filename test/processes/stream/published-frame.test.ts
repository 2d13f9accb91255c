import { expect, it } from 'vitest'
import { FrameError, frameHeadBytes } from '../../../src/processes/frames.js'
import {
  leftOutFields,
  publishedFields,
  readPublished,
} from '../../../src/processes/stream/published-frame.js'

const json = Buffer.from('{"cameraId":"dock-1","label":"Prüfer ✓"}')
const picture = Buffer.alloc(300, 7)
const result = { cameraId: 'dock-1', json, position: 1_823_000_000_000_512, atMs: 81_234.5 }

const bodyOf = (picture: Buffer) =>
  Buffer.concat([
    publishedFields(result)
      .frame(json.length + picture.length)
      .subarray(frameHeadBytes),
    json,
    picture,
  ])

it('a result arrives as it was published, with its picture and without', () => {
  expect(readPublished(bodyOf(Buffer.alloc(0)))).toEqual(result)
  expect(readPublished(bodyOf(picture))).toEqual({ ...result, picture })
})

it('so does the word that results were left out', () => {
  const leftOut = { cameraId: 'gate', results: 12 }
  expect(readPublished(leftOutFields(leftOut).frame(0).subarray(frameHeadBytes))).toEqual(leftOut)
})

it('one that is cut off is none', () => {
  const body = bodyOf(Buffer.alloc(0))
  for (let cut = 0; cut < body.length; cut += 1)
    expect(() => readPublished(body.subarray(0, cut)), `${cut}`).toThrow(FrameError)
})
