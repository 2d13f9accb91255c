/** Pseudo-random numbers that a seed repeats: mulberry32. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const interesting = [
  '-1',
  '9007199254740993',
  '1e400',
  'null',
  '[]',
  '{}',
  '"',
  '\\u0000',
  'NaN',
  '[[[[[[',
  '\xff\xfe',
]

/** A copy with one to four changes: bytes flipped, cut, doubled, or text that parsers stumble on put in. */
export function mutated(body: Buffer, random: (below: number) => number): Buffer {
  let bytes = Buffer.from(body)
  for (let left = 1 + random(4); left > 0; left--) {
    const at = random(bytes.byteLength + 1)
    const end = Math.min(bytes.byteLength, at + random(16))
    const insert = Buffer.from(interesting[random(interesting.length)] ?? '', 'latin1')
    const parts = [
      [bytes.subarray(0, at), Buffer.from([random(256)]), bytes.subarray(at + 1)],
      [bytes.subarray(0, at)],
      [bytes.subarray(0, end), bytes.subarray(at)],
      [bytes.subarray(0, at), insert, bytes.subarray(end)],
    ]
    bytes = Buffer.concat(parts[random(parts.length)] ?? [bytes])
  }
  return bytes
}
