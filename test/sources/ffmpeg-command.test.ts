import { describe, expect, it } from 'vitest'
import { cameraSchema, type CameraConfig } from '../../src/config/camera.js'
import { inSoftware, type DecodeWay } from '../../src/sources/decode-ways.js'
import { decoderArguments } from '../../src/sources/ffmpeg-command.js'

const camera = cameraSchema.parse({ id: 'dock', url: 'rtsp://192.0.2.1/s' })
const input = { kind: 'rtsp', url: camera.url, transport: 'tcp' } as const
const format = { input: { widthPx: 416, heightPx: 416 }, align: 'center' } as const

function commandOf(way: DecodeWay, setting: Partial<CameraConfig> = {}) {
  const args = decoderArguments({ ...camera, ...setting }, input, format, way)
  const filters = (args[args.indexOf('-filter:v') + 1] ?? '').split(/,(?![^']*'[^']*(?:'[^']*'[^']*)*$)/)
  const before = args.slice(0, args.indexOf('-i'))
  const option = (name: string) => (before.includes(name) ? before[before.indexOf(name) + 1] : undefined)
  return { args, filters: filters.join(','), option }
}

describe('the decoder on an NVIDIA card', () => {
  it('is the one of the engine, and keeps its pictures there', () => {
    for (const way of [
      { by: 'cuda-scaled', device: 3 },
      { by: 'cuda', device: 3, tenBit: false },
    ] as const) {
      const { option } = commandOf(way)
      expect([
        option('-hwaccel'),
        option('-hwaccel_device'),
        option('-hwaccel_output_format'),
        option('-threads'),
      ]).toEqual(['cuda', '3', 'cuda', '1'])
    }
  })

  it('brings back pictures that are sampled, and scaled ones at their size', () => {
    const scaled = commandOf({ by: 'cuda-scaled', device: 0 }).filters
    expect(scaled).toMatch(
      /^select=.*,crop=w=iw:.*,scale_cuda=w='[^']*max\(1,round\(ld\(1\)\*min\(416\/ld\(1\),416\/ih\)\)\)':h='[^']*':interp_algo=bilinear:format=yuv444p,hwdownload,format=yuv444p,scale=w=iw:h='[^']*':eval=frame:flags=full_chroma_int,format=rgb24,pad=w=416:h=416:/,
    )
    const plain = commandOf(inSoftware).filters
    const whole = (tenBit: boolean) => commandOf({ by: 'cuda', device: 0, tenBit }).filters
    expect(whole(false).replace('hwdownload,format=nv12,', '')).toBe(plain)
    expect(whole(true).replace('hwdownload,format=p010le,', '')).toBe(plain)
    expect(whole(true)).toMatch(/^select=.*,crop=w=iw:.*,hwdownload,/)
  })
})

describe('the shape of pixels that a camera is set to', () => {
  it.each([
    [{ sampleAspectRatio: '2:1' }, 'setsar=r=2:max=65536'],
    [{ displayAspectRatio: '16:10' }, 'setdar=r=1.6:max=65536'],
  ])('goes before what its stream says, wherever it is decoded: %o', (setting, filter) => {
    for (const way of [
      inSoftware,
      { by: 'vaapi' },
      { by: 'cuda', device: 0, tenBit: false },
      { by: 'cuda-scaled', device: 0 },
    ] as const)
      expect(commandOf(way, setting).filters.split("ld(1)',")[1]).toMatch(new RegExp(`^${filter},crop=w=iw:`))
  })
})

describe('the decoder of another accelerator', () => {
  it('is named, and all else is as in software', () => {
    const plain = commandOf(inSoftware).args
    expect(plain).not.toContain('-hwaccel')
    for (const by of ['vaapi', 'auto'] as const) {
      const { args, option } = commandOf({ by })
      expect(option('-hwaccel')).toBe(by)
      const at = args.indexOf('-hwaccel')
      expect(args.toSpliced(at, 2)).toEqual(plain)
    }
  })
})
