import sharp from 'sharp'
import { beforeAll, describe, expect, it } from 'vitest'
import { PictureSplitter, PictureTooLargeError } from '../../src/sources/picture-splitter.js'
import { alone, mjpegForms } from '../support/mjpeg-forms.js'
import { plainPicture, withoutTables, withThumbnail } from '../support/still-pictures.js'

const type = 'multipart/x-mixed-replace; boundary=frame'

describe('PictureSplitter', () => {
  let pictures: readonly Buffer[]

  beforeAll(async () => {
    const [red, green, blue] = await Promise.all(
      ['red', 'green', 'blue'].map((colour) => plainPicture(colour)),
    )
    if (red === undefined || green === undefined || blue === undefined) throw new Error('no pictures')
    const noise = await sharp({
      create: {
        width: 200,
        height: 160,
        channels: 3,
        background: 'grey',
        noise: { type: 'gaussian', mean: 128, sigma: 40 },
      },
    })
      .jpeg()
      .toBuffer()
    const progressive = await sharp(noise).jpeg({ progressive: true }).toBuffer()
    pictures = [red, withThumbnail(green, blue), withoutTables(blue), noise, progressive]
  })

  type Got = Readonly<{ bytes: Buffer; isCut: boolean; kind: string; behind: number }>
  /** Writes the bytes in pieces, and tells what came with how many bytes written. */
  function split(bytes: Buffer, pieceBytes: number, contentType?: string, ends = true): Got[] {
    const got: Got[] = []
    let written = 0
    const splitter = new PictureSplitter(({ bytes: own, ...rest }) => {
      got.push({ ...rest, bytes: Buffer.from(own), behind: written })
    }, contentType)
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes)
      written += piece.length
      splitter.write(piece)
    }
    if (ends) splitter.end()
    return got
  }

  it.each(Object.entries(mjpegForms))('R63: takes the pictures out of %s', (_, form) => {
    const bytes = form.bytes(pictures)
    for (const pieceBytes of [1, 7, 1_460, bytes.length]) {
      const got = split(bytes, pieceBytes, form.type)
      expect(got.map((each) => each.isCut)).toEqual(pictures.map(() => false))
      for (const [index, each] of got.entries())
        expect(each.bytes.equals(pictures[index] as Buffer)).toBe(true)
    }
  })

  it.each(Object.entries(mjpegForms))('hands each picture on with its last byte: %s', (_, form) => {
    const bytes = form.bytes(pictures)
    const got = split(bytes, 1, form.type, false)
    expect(got.map((each) => each.behind)).toEqual(
      pictures.map((picture) => bytes.indexOf(picture) + picture.length),
    )
  })

  it.each(['png', 'webp'] as const)('takes %s as well', async (format) => {
    const stills = await Promise.all(['red', 'blue'].map((colour) => plainPicture(colour, format)))
    const bytes = Buffer.concat(
      stills.flatMap((still) => [Buffer.from(`--frame\r\nContent-Type: image/${format}\r\n\r\n`), still]),
    )
    for (const pieceBytes of [1, bytes.length]) {
      const got = split(bytes, pieceBytes, type)
      expect(got.map(({ kind, isCut }) => [kind, isCut])).toEqual([
        [format, false],
        [format, false],
      ])
      expect(got[1]?.bytes.equals(stills[1] as Buffer)).toBe(true)
    }
  })

  it.each([0.4, 0.7, 0.95])('a picture that is cut at %d spoils no other one', (share) => {
    const [first, , third, noise] = pictures as [Buffer, Buffer, Buffer, Buffer]
    const cut = noise.subarray(0, Math.round(noise.length * share))
    for (const form of ['plain', 'parts without length', 'LF alone', 'pictures alone as image/jpeg'])
      for (const pieceBytes of [1, 5_000]) {
        const { bytes, type: said } = mjpegForms[form] ?? { bytes: alone }
        const got = split(bytes([first, cut, third]), pieceBytes, said)
        expect(got.map((each) => each.isCut)).toEqual([false, true, false])
        expect(got[1]?.bytes.subarray(0, cut.length).equals(cut)).toBe(true)
        expect(got[1]?.bytes.length).toBeLessThan(cut.length + 4)
        expect(got[2]?.bytes.equals(third)).toBe(true)
      }
  })

  it('finds the next picture behind one whose head is garbled, or whose data is', () => {
    const [first, , third, noise, progressive] = pictures as [Buffer, Buffer, Buffer, Buffer, Buffer]
    for (const whole of [noise, progressive])
      for (const [at, value] of [
        [20, 0],
        [whole.length - 1_000, 0xff],
      ] as const) {
        const garbled = Buffer.from(whole)
        garbled.fill(value, at, at + 8)
        garbled[at + 8] = 0xc4
        const got = split((mjpegForms.plain?.bytes ?? alone)([first, garbled, third]), 999, type)
        expect(got).toHaveLength(3)
        expect(got[2]?.bytes.equals(third)).toBe(true)
      }
  })

  it('counts what is no picture', () => {
    const splitter = new PictureSplitter(() => undefined, type)
    for (let part = 0; part < 3; part += 1)
      splitter.write(
        Buffer.from('--frame\r\nContent-Type: video/h264\r\nContent-Length: 4\r\n\r\n\0\0\0\x01\r\n'),
      )
    expect(splitter.foreign).toEqual({ parts: 3, type: 'video/h264' })
    expect(splitter.begun).toBe(0)
  })

  it('holds no picture that is larger than any camera sends, nor lines without end', () => {
    const splitter = new PictureSplitter(() => undefined)
    for (let mib = 0; mib < 40; mib += 1) splitter.write(Buffer.alloc(1024 * 1024, 0x20))
    const [first] = pictures
    splitter.write((first as Buffer).subarray(0, -2))
    expect(() => {
      for (let mib = 0; mib < 40; mib += 1) splitter.write(Buffer.alloc(1024 * 1024))
    }).toThrow(PictureTooLargeError)
  })
})
