import { describe, expect, it } from 'vitest'
import { elementsOf } from '../../../src/tensors/elements.js'
import { bytesOfJson } from '../../../src/api/kserve/json-tensor.js'
import { jsonOfTensor } from '../../../src/api/kserve/json-output.js'
import {
  JsonArrayText,
  mostJsonParts,
  mostJsonValues,
  mostNumberBytes,
} from '../../../src/api/kserve/json-scanner.js'
import { parseInferJson, parseJson } from '../../../src/api/kserve/json.js'
import type { Datatype } from '../../../src/tensors/element-type.js'
import { ServingError } from '../../../src/tensors/serving-error.js'

const seed = Number(process.env['GANTRY_FUZZ_SEED'] ?? 1)

/** Numbers in 0..1 that are the same in every run. */
function randomNumbers(start: number): () => number {
  let state = start
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

type Random = () => number

function pick<T>(random: Random, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)]!
}

const texts = [
  '',
  'a',
  'é',
  '"',
  '\\',
  '\n',
  '\u0000',
  '\u2028',
  '𝄞',
  'plain text',
  '__proto__',
  'x'.repeat(100),
]

function randomNumber(random: Random): number {
  const scale = 10 ** Math.floor(random() * 60 - 30)
  const value = pick(random, [random() * scale, Math.floor(random() * 1e6), random() * 1e15, 5e-324, 0, 1.5])
  return random() < 0.5 ? value : -value
}

function randomValue(random: Random, depth: number): unknown {
  const kind = Math.floor(random() * (depth > 4 ? 4 : 6))
  if (kind === 0) {
    const number = randomNumber(random)
    // Larger whole numbers are bigints.
    return Number.isInteger(number) && !Number.isSafeInteger(number) ? 0.5 : number
  }
  if (kind === 1) return pick(random, texts)
  if (kind === 2) return pick(random, [true, false, null])
  if (kind === 3) return pick(random, [[], {}])
  const values = Array.from({ length: Math.floor(random() * 5) }, () => randomValue(random, depth + 1))
  return kind === 4
    ? values
    : Object.fromEntries(values.map((value, at) => [`${pick(random, texts)}${at}`, value]))
}

const read = (text: string | Uint8Array): unknown => parseJson(Buffer.from(text as string))

/** The `data` of an input, read as a tensor. */
function tensorOf(datatype: Datatype, shape: readonly number[], data: string): Uint8Array {
  const json = parseInferJson(Buffer.from(`{"inputs":[{"data":${data}}]}`)) as { inputs: [{ data: unknown }] }
  return bytesOfJson('in0', datatype, shape, json.inputs[0].data)
}

const doubles = (bytes: Uint8Array): number[] => [...new Float64Array(bytes.slice().buffer)]

describe('JSON', () => {
  it('is read as JSON.parse reads it', () => {
    const random = randomNumbers(seed)
    for (let i = 0; i < 2_000; i++) {
      const value = randomValue(random, 0)
      const text = JSON.stringify(value, undefined, random() < 0.5 ? 0 : 2)
      expect(read(text), text).toEqual(JSON.parse(text))
    }
  })

  it('has numbers that are the nearest to what is written', () => {
    const random = randomNumbers(seed)
    for (let i = 0; i < 20_000; i++) {
      const value = randomNumber(random)
      const digits = Math.floor(random() * 25)
      const text = pick(random, [
        String(value),
        value.toExponential(Math.min(digits, 20)),
        Math.abs(value) < 1e20 ? value.toFixed(digits) : String(value),
      ])
      const found = read(text)
      expect(Object.is(Number(found), Number(text)), `${text} was read as ${String(found)}`).toBe(true)
    }
  })

  it.each([
    ['9007199254740991', 9007199254740991],
    ['9007199254740993', 9007199254740993n],
    ['-9223372036854775808', -9223372036854775808n],
    ['-0', -0],
    ['0.00', 0],
    ['123456789012345e22', 1.23456789012345e36],
    ['1e400', Infinity],
    ['1e-99999999999', 0],
    ['NaN', NaN],
    ['-Infinity', -Infinity],
    ['Inf', Infinity],
  ])('has %s', (text, value) => {
    expect(read(text)).toBe(value)
  })

  it.each([
    '',
    ' ',
    '01',
    '1.',
    '.5',
    '+1',
    '-',
    '1e',
    'nul',
    '[1,]',
    '[1',
    '[1}',
    '{"a"}',
    '{"a":}',
    '{a:1}',
    '"',
    '"\\x"',
    '"\n"',
    '1 2',
    "'a'",
    '{"a":1,}',
    ']',
  ])('is not %j', (text) => {
    expect(() => read(text)).toThrow(ServingError)
  })

  it.each([
    // Halfway between two doubles, and next to it.
    '562949953421312.0625',
    '562949953421312.0624',
    '562949953421312.1875',
    '562949953421312.3126',
    '0.12345678806304932',
    '-0.9999999999999999',
    '0.30000000000000004',
    '1.7976931348623157e-5',
    '123456789012345.6789',
    '1234567890123456.789',
    '99999999999999999.99',
    '12345678901234567e-21',
    '12345678901234567e-26',
    '1234567890123456789e-22',
    '1234567890123456789e-27',
    '0.00000012345678901234567',
  ])('has %s as it is', (text) => {
    expect(Object.is(read(text), Number(text)), `${text} was read as ${String(read(text))}`).toBe(true)
  })

  it('has fractions of as many digits as float32 and float64 are written with as they are', () => {
    const random = randomNumbers(seed)
    const texts = Array.from({ length: 100_000 }, () => {
      const value = (random() - 0.5) * pick(random, [1, 255, 1e-3, 1e-6, 1e6])
      return pick(random, [String(Math.fround(value)), String(value), value.toPrecision(19)])
    })
    expect(texts.filter((text) => !Object.is(read(text), Number(text)))).toEqual([])
  })

  it('that was changed anywhere is read or refused, and nothing else happens', () => {
    const random = randomNumbers(seed)
    const whole = Buffer.from(
      '{"id":"7","inputs":[{"name":"in0","datatype":"BYTES","shape":[2,2],"data":[["a","b\\n"],["é",""]]},{"name":"x","datatype":"FP32","shape":[3],"data":[1.5,-2e3,NaN]}]}',
    )
    for (let i = 0; i < 20_000; i++) {
      const changed = Buffer.from(whole)
      for (let n = 0; n <= random() * 3; n++)
        changed[Math.floor(random() * changed.length)] =
          random() < 0.7
            ? pick(
                random,
                [...'[]{}",:\\0e-.n '].map((c) => c.charCodeAt(0)),
              )
            : Math.floor(random() * 256)
      const cut = random() < 0.2 ? changed.subarray(0, Math.floor(random() * changed.length)) : changed
      try {
        const { inputs } = parseInferJson(cut) as { inputs?: { data?: unknown }[] }
        for (const [at, datatype] of (['BYTES', 'FP64'] as const).entries())
          bytesOfJson('in0', datatype, at === 0 ? [2, 2] : [3], inputs?.[at]?.data)
      } catch (error) {
        if (error instanceof ServingError || error instanceof TypeError) continue
        throw error
      }
    }
  })
})

describe('S12: one long token', () => {
  it.each([
    ['digits', () => '7'.repeat(5_000_000)],
    ['digits after a point', () => `0.${'7'.repeat(5_000_000)}`],
    ['digits of an exponent', () => `1e${'7'.repeat(5_000_000)}`],
    ['zeros', () => `0.${'0'.repeat(5_000_000)}1`],
  ])('of %s is refused', (_, make) => {
    const number = make()
    expect(() => read(number)).toThrow(`A number has more than ${mostNumberBytes} characters at 0`)
    expect(() => tensorOf('FP64', [1], `[${number}]`)).toThrow('A number has more than')
  })

  it('is taken up to the exact form of a double', () => {
    const exact = (5e-324).toFixed(100) === '' ? '' : `-0.${'0'.repeat(323)}4${'9'.repeat(750)}`
    expect(read(exact)).toBe(-5e-324)
    expect(doubles(tensorOf('FP64', [1], `[${exact}]`))).toEqual([-5e-324])
  })

  it.each([
    ['text', () => '"' + 'a'.repeat(20_000_000) + '"', 20_000_000],
    ['escapes', () => '"' + '\\n'.repeat(2_000_000) + '"', 2_000_000],
    ['backslashes', () => '"' + '\\\\'.repeat(2_000_000) + '"', 2_000_000],
  ])('of %s is read once', (_, make, length) => {
    const text = make()
    expect((read(text) as string).length).toBe(length)
    expect(tensorOf('BYTES', [1], `[${text}]`).byteLength).toBe(4 + length)
  })

  it.each([
    ['backslashes', () => '"' + '\\'.repeat(5_000_001)],
    ['space', () => '[' + ' '.repeat(5_000_000)],
    ['quotation marks', () => '"'.repeat(999_999)],
  ])('of %s without an end is refused', (_, make) => {
    const text = make()
    expect(() => read(text)).toThrow(ServingError)
    expect(() => tensorOf('BYTES', [1], `[${text}]`)).toThrow(ServingError)
  })
})

describe('S12: nesting', () => {
  it.each([
    ['arrays', () => '['.repeat(5_000_000)],
    ['objects', () => '{"a":'.repeat(1_000_000)],
    ['both', () => '[{"a":'.repeat(1_000_000)],
  ])('of %s without end is refused', (_, make) => {
    const text = make()
    const deep = 'JSON nesting depth exceeds maximum allowed limit (100)'
    expect(() => read(text)).toThrow(deep)
    expect(() => tensorOf('FP64', [1], `[${text}`)).toThrow(deep)
  })

  it('of a tensor is what it may be', () => {
    expect(doubles(tensorOf('FP64', [1], '['.repeat(100) + '7' + ']'.repeat(100)))).toEqual([7])
    expect(doubles(tensorOf('FP64', [3], '[[[1],[]],[],[[[2,3]]]]'))).toEqual([1, 2, 3])
    expect(tensorOf('FP64', [0], '[[],[[]]]').byteLength).toBe(0)
  })
})

/** What became of an input: its bytes, or the error without its place. */
function outcomeOf(datatype: Datatype, count: number, text: string): string {
  try {
    const { inputs } = parseInferJson(Buffer.from(text, 'latin1')) as { inputs?: { data?: unknown }[] }
    return Buffer.from(bytesOfJson('in0', datatype, [count], inputs?.[0]?.data)).toString('hex')
  } catch (error) {
    return (error as Error).message.replace(/ at \d+$/, '')
  }
}

describe('an array that is passed at a look', () => {
  /** Behind a short text there is too little to look into: its bytes are counted one by one. */
  const room = ' '.repeat(2_000)

  it('becomes what it became when its bytes were counted, whatever is wrong with it', () => {
    const random = randomNumbers(seed)
    const seen = new Set<string>()
    for (let i = 0; i < 5_000; i++) {
      const datatype = pick(random, ['UINT8', 'INT64', 'FP32', 'BOOL', 'BYTES'] as const)
      const values = Array.from({ length: 1 + random() * 6 }, () =>
        pick(random, [
          '1',
          '0',
          '-7',
          '255',
          '256',
          '0.5',
          '1e2',
          '9007199254740993',
          '',
          'NaN',
          'true',
          '"a"',
          '[1,2]',
          '[]',
          '{"b":3}',
          ' 4 ',
        ]),
      )
      const text = [...`{"inputs":[{"data":[${values.join()}]},{"data":[5]}]}`]
      if (random() < 0.5) text[Math.floor(random() * text.length)] = pick(random, [...'[]{}",:1 \\'])
      const count = Math.floor(random() * 12)
      const outcome = outcomeOf(datatype, count, text.join(''))
      seen.add(outcome)
      expect(outcomeOf(datatype, count, text.join('') + room), `${datatype} ${count} ${text.join('')}`).toBe(
        outcome,
      )
    }
    expect(seen.size).toBeGreaterThan(50)
  })

  const inputs = (count: number, data: string) =>
    Buffer.from(`{"inputs":[${`{"data":${data}},`.repeat(count)}{}]}`)

  it.each(['[1]', '["1"]'])('counts as one of the parts that a request may have: %s', (data) => {
    // The request, its inputs and the empty one; of each other one itself, its data, and the array.
    const most = Math.floor((mostJsonParts - 3) / 3)
    expect(() => parseInferJson(inputs(most, data))).not.toThrow()
    expect(() => parseInferJson(inputs(most + 1, data))).toThrow(
      `request JSON has more than ${mostJsonParts}`,
    )
  })

  it('has no more values than all of a request may have, and the limit is exact', () => {
    const many = (count: number) =>
      Buffer.concat([
        Buffer.from('{"inputs":[{"data":[1'),
        Buffer.alloc(2 * (count - 1), ',1'),
        Buffer.from(']}]}'),
      ])
    expect(() => parseInferJson(many(mostJsonValues))).not.toThrow()
    expect(() => parseInferJson(many(mostJsonValues + 1))).toThrow(`more than ${mostJsonValues} values`)
  })

  it('is looked for once, however many there are that do not end', () => {
    const startedMs = performance.now()
    expect(() => parseInferJson(inputs(300_000, '[1}'))).not.toThrow()
    expect(() => parseInferJson(inputs(200_000, '[[1]]'))).not.toThrow()
    expect(performance.now() - startedMs).toBeLessThan(10_000)
  })
})

describe('whole numbers', () => {
  it.each([
    ['UINT8', '0', '255', '-1', '256'],
    ['INT8', '-128', '127', '-129', '128'],
    ['UINT16', '0', '65535', '-1', '65536'],
    ['INT16', '-32768', '32767', '-32769', '32768'],
    ['UINT32', '0', '4294967295', '-1', '4294967296'],
    ['INT32', '-2147483648', '2147483647', '-2147483649', '2147483648'],
    ['UINT64', '0', '18446744073709551615', '-1', '18446744073709551616'],
    ['INT64', '-9223372036854775808', '9223372036854775807', '-9223372036854775809', '9223372036854775808'],
  ] as const)('of %s are from %s to %s, anywhere in a long tensor', (datatype, least, most, below, above) => {
    const few = ['1', least, most, '1e1', '100.0', '-0']
    const count = 3_000
    const texts = Array.from({ length: count }, (_, at) => few[at % few.length]!)
    const read = elementsOf(datatype, tensorOf(datatype, [count], `[${texts.join(', ')}]`).slice())
    expect(Array.from(read as Iterable<number | bigint>, BigInt)).toEqual(
      texts.map((text) => (/^-?\d+$/.test(text) ? BigInt(text) : BigInt(Number(text)))),
    )
    for (const wrong of [below, above, '0.5', 'NaN', '1e300'])
      for (const at of [0, 1_023, 1_024, count - 1]) {
        const withWrong = texts.with(at, wrong)
        expect(() => tensorOf(datatype, [count], `[${withWrong.join()}]`)).toThrow(` is no ${datatype}`)
      }
  })

  it.each(['INT64', 'UINT64'] as const)('of %s are exact around 2^32 and 2^53', (datatype) => {
    const around = [2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 62n].flatMap((n) => [n - 1n, n, n + 1n])
    const values = datatype === 'INT64' ? [...around, ...around.map((value) => -value)] : around
    const read = elementsOf(datatype, tensorOf(datatype, [values.length], `[${values.join()}]`).slice())
    expect([...read]).toEqual(values)
  })
})

describe('a tensor with many elements', () => {
  const many = 100_000

  it('is the same as its elements one by one', () => {
    const random = randomNumbers(seed)
    const values = Float64Array.from({ length: many }, () => randomNumber(random) + 0)
    const read = tensorOf('FP64', [many], `[${values.join()}]`)
    expect(Buffer.compare(read, new Uint8Array(values.buffer))).toBe(0)
    const longs = Array.from({ length: 1_000 }, () => BigInt(Math.floor(random() * 2 ** 52)) * 2_047n)
    expect([...new BigInt64Array(tensorOf('INT64', [1_000], `[${longs.join()}]`).slice().buffer)]).toEqual(
      longs,
    )
    const flags = Array.from({ length: many }, () => random() < 0.5)
    expect(
      Buffer.compare(tensorOf('BOOL', [many], JSON.stringify(flags)), Buffer.from(flags.map(Number))),
    ).toBe(0)
  })

  it('of texts goes out as it came in', () => {
    const random = randomNumbers(seed)
    const words = Array.from({ length: many }, () => pick(random, texts))
    const text = JSON.stringify(words)
    const data = tensorOf('BYTES', [many], text)
    expect(jsonOfTensor({ name: 'out0', datatype: 'BYTES', data }).equals(Buffer.from(text))).toBe(true)
  })

  it('goes out in pieces as it would in one', () => {
    const values = Float64Array.from({ length: 10_000 }, (_, at) => (at % 3 === 0 ? at : at / 7))
    const text = jsonOfTensor({
      name: 'out0',
      datatype: 'FP64',
      data: new Uint8Array(values.buffer),
    }).toString()
    expect(JSON.parse(text)).toEqual([...values])
    expect(text.startsWith('[0.0,0.14285714285714285,')).toBe(true)
  })

  it('is refused where its shape is not true, in both directions', () => {
    const message = "Unable to parse 'data': Shape does not match true shape of 'data' field"
    expect(() => tensorOf('FP64', [2], '[1]')).toThrow(message)
    expect(() => tensorOf('FP64', [1], '[1,2]')).toThrow(message)
    expect(() => tensorOf('BYTES', [2 ** 40], '["a"]')).toThrow(message)
    expect(() => tensorOf('BYTES', [1], '["a","b"]')).toThrow(message)
  })

  it('takes no more memory than its text has elements for, and is not text in another encoding', () => {
    const latin = Buffer.from('{"inputs":[{"data":["\xe9\\n\xe9"]}]}', 'latin1')
    const { inputs } = parseInferJson(latin) as { inputs: [{ data: unknown }] }
    expect(inputs[0].data).toBeInstanceOf(JsonArrayText)
    expect(() => bytesOfJson('in0', 'BYTES', [1], inputs[0].data)).toThrow('Invalid encoding in string.')
  })
})
