import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { dataOf } from '../../../src/tensors/tensor.js'
import { readDataFile } from '../../../src/tools/perf/data-file.js'
import { tempDir } from '../../support/temp-dir.js'

const floats = { name: 'A', datatype: 'FP32', shape: [2, 2] } as const
const texts = { name: 'B', datatype: 'BYTES', shape: [2, 1] } as const
const free = { name: 'A', datatype: 'INT64', shape: [1, 3] } as const

function file(content: unknown): string {
  const path = join(tempDir(), 'data.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

describe('a data file of perf_analyzer', () => {
  it('has rows that are repeated for the batch, in each of its forms', () => {
    const row = Float32Array.of(1, 2.5)
    const b64 = Buffer.from(dataOf(row)).toString('base64')
    const path = file({
      data: [
        { A: [1, 2.5], B: ['é'] },
        { A: { content: [[1], [2.5]] }, B: { content: ['é'], shape: [1] } },
        [
          { A: { b64 }, B: ['é'] },
          { A: { content: { b64 } }, B: ['é'] },
        ],
      ],
    })
    const requests = readDataFile(path, [floats, texts], 2)
    expect(requests).toHaveLength(4)
    for (const [a, b] of requests) {
      expect(a).toMatchObject({ name: 'A', shape: [2, 2] })
      expect(Buffer.from(a!.data)).toEqual(Buffer.from(dataOf(Float32Array.of(1, 2.5, 1, 2.5))))
      expect(Buffer.from(b!.data)).toEqual(Buffer.from('\x02\0\0\0\xc3\xa9\x02\0\0\0\xc3\xa9', 'latin1'))
    }
  })

  it('may have a shape for each request', () => {
    const path = file({ data: [{ A: { content: [1, 2], shape: [2] } }, { A: [1, 2, 3] }] })
    const [first, second] = readDataFile(path, [free], 1).flat()
    expect([first?.shape, second?.shape]).toEqual([
      [1, 2],
      [1, 3],
    ])
    expect(first?.data).toEqual(dataOf(BigInt64Array.of(1n, 2n)))
  })

  it.each([
    ['no JSON', '{', 'JSON'],
    ['no data', {}, 'data'],
    ['nothing in it', { data: [] }, 'data'],
    ['another input', { data: [{ B: [1] }] }, 'data[0] has no input "A"'],
    ['too many elements', { data: [{ A: [1, 2, 3] }] }, 'it has 12 bytes, and [2] of FP32 has 8'],
    ['a word for an input', { data: [{ A: 'x' }] }, 'nvalid input'],
  ])('is refused with %s', (_, content, problem) => {
    expect(() => readDataFile(file(content), [floats], 2)).toThrow(problem)
  })

  it('is refused where there is none', () => {
    expect(() => readDataFile('/nowhere.json', [floats], 2)).toThrow('ENOENT')
  })
})

it('R66: a data file of a Windows editor is read; one in UTF-16 is refused by name', () => {
  const text = '{\r\n "data": [{ "A": [1, 2] }]\r\n}\r\n'
  const read = (content: string | Uint8Array) => {
    const path = join(tempDir(), 'data.json')
    writeFileSync(path, content)
    return readDataFile(path, [floats], 2)
  }
  expect(read(`\uFEFF${text}`)).toHaveLength(1)
  expect(() => read(Buffer.from(`\uFEFF${text}`, 'utf16le'))).toThrow(/it is UTF-16.*save it as UTF-8/)
})
