import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { OnnxSession } from '../../../src/backends/onnxruntime/onnx-session.js'
import { buildOnnx } from '../../support/onnx-builder.js'
import { tempDir } from '../../support/temp-dir.js'

async function opened(op: 'Identity' | 'Neg'): Promise<OnnxSession> {
  const path = join(tempDir(), 'model.onnx')
  const onnx = buildOnnx({
    inputs: [{ name: 'in', type: 'int8', shape: ['batch', 2] }],
    outputs: [{ name: 'out', type: 'int8', shape: ['batch', 2] }],
    nodes: [{ op, inputs: ['in'], outputs: ['out'] }],
  })
  writeFileSync(path, onnx)
  const session = new OnnxSession()
  await session.load({
    session: { path, providers: ['cpu'], deviceId: 0, intraOpThreads: 1, graphOptimization: 'all' },
    inputTypes: { in: 'int8' },
    scalars: { inputs: [], outputs: {} },
    batchRows: undefined,
    measuresMemory: false,
  })
  onTestFinished(() => session.release())
  return session
}

const bytes = (...values: readonly number[]): Uint8Array => new Uint8Array(Int8Array.from(values))
const job = (rows: number, ...parts: readonly Uint8Array[]) => ({
  inputs: [{ name: 'in', shape: [rows, 2], parts }],
  outputs: ['out'],
})

it.each(['Identity', 'Neg'] as const)(
  'gives the memory of inputs back at once, with the outputs of %s as they are',
  async (op) => {
    const session = await opened(op)
    const [alone, first, second] = [bytes(1, 2), bytes(3, 4), bytes(5, 6)]
    const answers = [await session.run(job(1, alone)), await session.run(job(2, first, second))]
    const sign = op === 'Neg' ? -1 : 1
    const values = answers.map(({ result }) => [...new Int8Array(result.outputs[0]!.data)])
    expect(values.map((row) => row.map((value) => sign * value))).toEqual([
      [1, 2],
      [3, 4, 5, 6],
    ])
    expect([alone, first, second].map(({ byteLength }) => byteLength)).toEqual([0, 0, 0])
  },
)

it('gives back the inputs of a run that fails, too', async () => {
  const session = await opened('Neg')
  const input = bytes(1, 2, 3)
  await expect(session.run(job(2, input))).rejects.toThrow()
  expect(input.byteLength).toBe(0)
})
