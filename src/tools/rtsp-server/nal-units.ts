/** H.264 NAL unit types that matter here (ITU-T H.264, table 7-1). */
export const nalTypes = {
  idr: 5,
  sps: 7,
  pps: 8,
  delimiter: 9,
  fragment: 28,
  of: (nal: Uint8Array): number => (nal[0] ?? 0) & 0x1f,
} as const

/** NAL units of an Annex B byte stream, without start codes and without copying. */
export function splitNalUnits(annexB: Buffer): readonly Buffer[] {
  const nals: Buffer[] = []
  let start = -1
  for (let at = annexB.indexOf(startCode); at >= 0; at = annexB.indexOf(startCode, at + 3)) {
    if (start >= 0) nals.push(withoutTrailingZeros(annexB.subarray(start, at)))
    start = at + 3
  }
  if (start >= 0) nals.push(withoutTrailingZeros(annexB.subarray(start)))
  return nals.filter((nal) => nal.length > 0)
}

const startCode = Buffer.from([0, 0, 1])

/** A four-byte start code leaves its first zero behind; a NAL unit itself never ends with zero. */
function withoutTrailingZeros(nal: Buffer): Buffer {
  let end = nal.length
  while (end > 0 && nal[end - 1] === 0) end -= 1
  return nal.subarray(0, end)
}
