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

/** What may stand where something else is expected. */
const odd: readonly unknown[] = [
  ...[null, true, 0, -1, 1.5, 2 ** 31, 2 ** 53, 1e308],
  ...['', 'x', '__proto__', '\u0000', 'BYTES', 'FP16', 'INT64', 'OUTPUT1', 'echo_string'],
  ...[[], {}, [0], [-1, 16], [2 ** 31, 2 ** 31], [[1], 1]],
]

/** A copy of plain objects and lists with one to three members replaced, removed, or doubled; bytes stay as they are. */
export function mutatedValue<T extends object>(value: T, random: (below: number) => number): T {
  const copy = structuredClone(value)
  for (let left = 1 + random(3); left > 0; left--) {
    const places = placesIn(copy)
    const [holder, key] = places[random(places.length)] ?? [copy, 'none']
    const change = random(4)
    if (change === 0) Reflect.deleteProperty(holder, key)
    else if (change === 1 && Array.isArray(holder)) holder.push(structuredClone(holder[Number(key)]))
    else Reflect.set(holder, key, structuredClone(odd[random(odd.length)]))
  }
  return copy
}

/** Every member at any depth: what holds it, and its name there. */
function placesIn(holder: object): (readonly [object, string])[] {
  return Object.entries(holder).flatMap(([key, value]) => {
    const inside = typeof value === 'object' && value !== null && !(value instanceof Uint8Array)
    return [[holder, key] as const, ...(inside ? placesIn(value as object) : [])]
  })
}
