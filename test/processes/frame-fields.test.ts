import { describe, expect, it } from 'vitest'
import {
  FieldReader,
  FieldWriter,
  lengthBytes,
  listBytes,
  numberBytes,
  textBytes,
} from '../../src/processes/frame-fields.js'
import { FrameError, frameHeadBytes } from '../../src/processes/frames.js'

const texts = ['', 'dock-1', 'Prüfer ✓ 🦺', 'x'.repeat(5_000)]
const numbers = [0, -1, 1.5, 2 ** 53 - 1, 1_764_218_400_123.25, 1e-9]

function body(): Buffer {
  const bytes = texts.reduce((sum, text) => sum + textBytes(text), 0)
  const fields = new FieldWriter(bytes + numberBytes + listBytes(numbers) + listBytes([]))
  for (const text of texts) fields.text(text)
  fields.number(numbers[4] ?? 0)
  fields.list(numbers)
  fields.list([])
  return Buffer.concat([fields.frame(3).subarray(frameHeadBytes), Buffer.of(7, 8, 9)])
}

describe('fields', () => {
  it('come back as they were written, and what follows them', () => {
    const fields = new FieldReader(body())
    expect(texts.map(() => fields.text())).toEqual(texts)
    expect(fields.number()).toBe(numbers[4])
    expect(fields.list()).toEqual(numbers)
    expect(fields.list()).toEqual([])
    expect([...fields.rest()]).toEqual([7, 8, 9])
  })

  it('are not read where they are cut off, wherever that is', () => {
    const whole = body()
    const end = whole.length - 3
    for (const cut of [...Array(60).keys(), end - 1, end - 5, end - lengthBytes - 1]) {
      const fields = new FieldReader(whole.subarray(0, cut))
      const read = () => [texts.map(() => fields.text()), fields.number(), fields.list(), fields.list()]
      expect(read, `${cut} of ${end}`).toThrow(FrameError)
    }
  })

  it('are not read beyond their frame, whatever lengths they tell', () => {
    const lying = Buffer.alloc(12, 0xff)
    expect(() => new FieldReader(lying).text()).toThrow(FrameError)
    expect(() => new FieldReader(lying).list()).toThrow(FrameError)
    expect(() => new FieldReader(lying).bytes(13)).toThrow(FrameError)
  })

  it('are never sent short: bytes that were not asked for are a fault in here', () => {
    const fields = new FieldWriter(numberBytes + 1)
    fields.number(1)
    expect(() => fields.frame(0)).toThrow('13 bytes of fields instead of 14')
    expect(() => new FieldWriter(4).number(1)).toThrow(RangeError)
  })
})
