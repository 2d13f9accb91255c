import { splitNalUnits } from '../../src/tools/rtsp-server/nal-units.js'

export type VideoCodec = 'h264' | 'h265'

/** NAL units of one picture, without start codes. */
export type PictureUnits = readonly Buffer[]

const isH265 = (codec: VideoCodec) => codec === 'h265'

/** ITU-T H.264, table 7-1; H.265, table 7-1. */
export function nalType(codec: VideoCodec, nal: Buffer): number {
  const first = nal[0] ?? 0
  return isH265(codec) ? (first >> 1) & 0x3f : first & 0x1f
}

export function isSlice(codec: VideoCodec, nal: Buffer): boolean {
  const type = nalType(codec, nal)
  return isH265(codec) ? type < 32 : type === 1 || type === 5
}

/** Parameter sets: of H.264 those of sequence and picture, of H.265 that of the video before them. */
export function isParameterSet(codec: VideoCodec, nal: Buffer): boolean {
  return (isH265(codec) ? [32, 33, 34] : [7, 8]).includes(nalType(codec, nal))
}

/** Pictures of a byte stream that was encoded without delimiters. */
export function pictureUnits(codec: VideoCodec, annexB: Buffer): readonly PictureUnits[] {
  const pictures: Buffer[][] = [[]]
  for (const nal of splitNalUnits(annexB)) {
    const isFirst = ((nal[isH265(codec) ? 2 : 1] ?? 0) & 0x80) !== 0
    const hasSlice = pictures.at(-1)?.some((unit) => isSlice(codec, unit)) === true
    if (hasSlice && (!isSlice(codec, nal) || isFirst)) pictures.push([])
    pictures.at(-1)?.push(nal)
  }
  return pictures
}

export function annexB(pictures: readonly PictureUnits[]): Buffer {
  return Buffer.concat(pictures.flat().flatMap((nal) => [Buffer.from([0, 0, 0, 1]), nal]))
}
