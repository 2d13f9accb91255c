import { deepestJson, JsonScanner, tooDeep } from './json-scanner.js'

/**
 * JSON as Triton's clients write it: whole numbers past 2^53 as bigint, and `NaN` and `Infinity` are numbers.
 *
 * @throws ServingError `INVALID_ARG`
 */
export function parseJson(bytes: Uint8Array): unknown {
  return new JsonReader(bytes).document('elsewhere')
}

/**
 * The JSON of an inference request, the `data` of its inputs left as `JsonArrayText` where they are arrays.
 *
 * @throws ServingError `INVALID_ARG`
 */
export function parseInferJson(bytes: Uint8Array): unknown {
  return new JsonReader(bytes).document('request')
}

export type JsonObject = Readonly<Record<string, unknown>>

/** `undefined` for anything else; own properties only, whatever their names. */
export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined
}

/** A property the JSON really has: `constructor` and its like are none. */
export function member(object: JsonObject | undefined, name: string): unknown {
  return object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined
}

/** What a value is in an inference request. */
type Place = 'request' | 'inputs' | 'input' | 'data' | 'elsewhere'

const [quote, colon] = [0x22, 0x3a]
const [bracket, bracketEnd, brace, braceEnd, minus, nine] = [0x5b, 0x5d, 0x7b, 0x7d, 0x2d, 0x39]

/** Makes values of JSON. */
export class JsonReader extends JsonScanner {
  document(place: Place): unknown {
    const value = this.value(0, place)
    if (this.next() !== -1) throw this.error('The document root must not be followed by other values.')
    return value
  }

  value(depth: number, place: Place): unknown {
    if (depth > deepestJson) throw tooDeep()
    const first = this.next()
    this.countPart()
    if (first === -1) throw this.error('The document is empty.')
    if (first === quote) return this.string()
    if (first === brace) return this.#object(depth, place)
    if (first === bracket) return place === 'data' ? this.arrayText() : this.#array(depth, place)
    return this.#scalar(first)
  }

  #scalar(first: number): unknown {
    if (first === minus || first <= nine || first === 0x4e || first === 0x49) return this.number()
    return this.literal()
  }

  #object(depth: number, place: Place): Record<string, unknown> {
    const entries: [string, unknown][] = []
    for (let more = this.begin(braceEnd); more; more = this.more(braceEnd)) {
      if (this.next() !== quote) throw this.error('Missing a name for object member.')
      const name = this.string()
      if (this.next() !== colon) throw this.error('Missing a colon after a name of object member.')
      this.at++
      entries.push([name, this.value(depth + 1, placeOf(place, name))])
    }
    return Object.fromEntries(entries)
  }

  #array(depth: number, place: Place): unknown[] {
    const inside = place === 'inputs' ? 'input' : 'elsewhere'
    const values: unknown[] = []
    for (let more = this.begin(bracketEnd); more; more = this.more(bracketEnd))
      values.push(this.value(depth + 1, inside))
    return values
  }

  /** Moves into an array or object. @returns whether it has anything in it */
  begin(end: number): boolean {
    this.at++
    if (this.next() !== end) return true
    this.at++
    return false
  }

  /** Moves behind what stands after a value. @returns whether another value comes. @throws ServingError */
  more(end: number): boolean {
    const next = this.next()
    if (next !== 0x2c && next !== end)
      throw this.error(`Missing a comma or ${String.fromCharCode(end)} after a value.`)
    this.at++
    return next === 0x2c
  }
}

function placeOf(outer: Place, name: string): Place {
  if (outer === 'request') return name === 'inputs' ? 'inputs' : 'elsewhere'
  return outer === 'input' && name === 'data' ? 'data' : 'elsewhere'
}
