import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CameraConfig } from '../../src/config/camera.js'
import { DecodeWays, type CardAnswer } from '../../src/sources/decode-ways.js'

const card: CardAnswer = { device: 1, isSeen: true }
const region = { x: 0, y: 0, width: 0.5, height: 1 }
const lines = {
  noDriver: '[AVHWDeviceContext @ 0x1] [error] Cannot load libcuda.so.1',
  noScaling: '[Parsed_scale_cuda_2 @ 0x1] [error] Unsupported input format: yuv422p',
  tenBits: '[hwdownload @ 0x1] [error] Invalid output format nv12 for hwframe download.',
  camera: '[error] Connection refused',
}
const waysOf = (hwaccel: CameraConfig['hwaccel'], more: Pick<CameraConfig, 'region'> = {}) =>
  new DecodeWays({ hwaccel, ...more })
const ended = (ways: DecodeWays, ...errors: readonly string[]) => ways.ended({ errors, isFruitless: false })

describe('where a camera is decoded', () => {
  it('is the processor, unless somebody asks for more', () => {
    const ways = waysOf('none')
    expect([ways.wantsCard, ways.choose(card, true)]).toEqual([
      false,
      { way: { by: 'software' }, reason: '' },
    ])
    expect(waysOf('vaapi').choose(undefined, true)).toEqual({ way: { by: 'vaapi' }, reason: '' })
  })

  it.each(['cuda', 'auto'] as const)('with %s is the card of the engine, with scaling there', (hwaccel) => {
    const ways = waysOf(hwaccel)
    expect([ways.wantsCard, ways.choose(card, true)]).toEqual([
      true,
      { way: { by: 'cuda-scaled', device: 1 }, reason: '' },
    ])
  })

  it('is the card without scaling where that cannot be, which it says', () => {
    const way = { by: 'cuda', device: 1, tenBit: false }
    expect(waysOf('cuda').choose(card, false)).toEqual({
      way,
      reason: 'this ffmpeg has no filter scale_cuda',
    })
    expect(waysOf('cuda', { region }).choose(card, true)).toEqual({
      way,
      reason: 'the region is cut out by the processor',
    })
  })

  it('is left to ffmpeg with auto where nothing tells of a card', () => {
    const ways = waysOf('auto')
    expect(ways.choose({ device: 0, isSeen: false }, true).way).toEqual({ by: 'auto' })
    expect(ways.foundNone()).toBe('no hardware decodes it by auto')
    expect(ways.now).toEqual({ way: { by: 'software' }, reason: 'no hardware decodes it by auto' })
    expect(ways.wantsCard).toBe(false)
  })

  it('is the processor as long as the card has no room, and is asked for again', () => {
    const ways = waysOf('cuda')
    const refusal = 'GPU 1 has 0.2 of 15.0 GiB left, and a decoder takes 560 MiB'
    expect(ways.choose({ ...card, refusal }, true)).toEqual({ way: { by: 'software' }, reason: refusal })
    expect(ways.wantsCard).toBe(true)
    expect(ways.choose(card, true).way.by).toBe('cuda-scaled')
  })
})

describe('a decoder on a card that fails', () => {
  it('is followed by one that scales in software, then by one in software', () => {
    const ways = waysOf('cuda')
    ways.choose(card, true)
    const scaling = 'GPU 1 does not scale the pictures'
    expect(ended(ways, lines.noScaling)).toEqual({
      reason: scaling,
      warning: `${scaling}: scaling in software`,
    })
    expect(ways.choose(card, true)).toEqual({
      way: { by: 'cuda', device: 1, tenBit: false },
      reason: scaling,
    })
    expect(ended(ways, lines.tenBits)).toEqual({ reason: 'its pictures have ten bits a sample' })
    expect(ways.choose(card, true).way).toEqual({ by: 'cuda', device: 1, tenBit: true })
    const driver = 'the NVIDIA driver (libcuda.so.1) is not there'
    expect(ended(ways, lines.noDriver)).toEqual({
      reason: driver,
      warning: `${driver}: decoding in software`,
    })
    expect(ways.choose(card, true)).toEqual({ way: { by: 'software' }, reason: driver })
    expect(ended(ways, lines.noDriver)).toBeUndefined()
  })

  it('goes on the same way after a trouble of the camera', () => {
    const ways = waysOf('cuda')
    ways.choose(card, true)
    expect(ended(ways, lines.camera)).toBeUndefined()
    expect(ways.choose(card, true).way.by).toBe('cuda-scaled')
  })

  it('goes another way when twice in a row no picture came, for whatever reason', () => {
    const ways = waysOf('cuda')
    const fruitless = { errors: ['[fatal] words that nobody knows'], isFruitless: true }
    ways.choose(card, true)
    expect(ways.ended(fruitless)).toBeUndefined()
    expect(ways.ended({ errors: [], isFruitless: false })).toBeUndefined()
    expect(ways.ended(fruitless)).toBeUndefined()
    expect(ways.ended(fruitless)?.reason).toBe('no picture came by GPU 1')
    expect(ways.choose(card, true).way.by).toBe('cuda')
    ways.ended(fruitless)
    expect(ways.ended(fruitless)?.warning).toContain('decoding in software')
    expect(ways.choose(card, true).way.by).toBe('software')
  })

  it('begins anew at once no more than three times, whatever is said', () => {
    const run = fc.record({
      errors: fc.array(fc.constantFrom(...Object.values(lines))),
      isFruitless: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(run), fc.boolean(), (runs, scales) => {
        const ways = waysOf('cuda')
        const detours = runs.filter((end) => {
          ways.choose(card, scales)
          return ways.ended(end) !== undefined
        })
        expect(detours.length).toBeLessThanOrEqual(3)
      }),
    )
  })
})
