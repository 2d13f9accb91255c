import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseModelConfig } from '../../src/repository/model-config-text.js'
import { implicitState, nextState } from '../../src/runtime/sequence-state.js'
import { warmUpRequests } from '../../src/runtime/warm-up.js'
import { mostHeldMs } from '../support/loop-held.js'
import { tempDir } from '../support/temp-dir.js'

const MiB = 1024 ** 2

/** A model's folder. */
function folder(files: Readonly<Record<string, Uint8Array>> = {}): string {
  const dir = tempDir()
  for (const sub of ['warmup', 'initial_state']) mkdirSync(join(dir, sub))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(dir, name), content)
  return dir
}

const warmUpOf = (type: string, elements: number, data: string) =>
  parseModelConfig(
    `backend: "onnxruntime" model_warmup { name: "w" inputs { key: "x" value { data_type: ${type} dims: ${elements} ${data} } } }`,
    'config.pbtxt',
  )
const text = Buffer.from([2, 0, 0, 0, 0xc3, 0xa4])

describe('S12: data of a model do not hold the loop', () => {
  it.each<readonly [string, string, number, string, Readonly<Record<string, Uint8Array>>]>([
    ['random floats', 'TYPE_FP32', 32 * MiB, 'random_data: true', {}],
    ['random whole numbers', 'TYPE_UINT8', 128 * MiB, 'random_data: true', {}],
    ['random halves', 'TYPE_FP16', 64 * MiB, 'random_data: true', {}],
    ['a file', 'TYPE_UINT8', 200 * MiB, 'input_data_file: "f"', { 'warmup/f': Buffer.alloc(200 * MiB, 1) }],
    [
      'a file of texts',
      'TYPE_STRING',
      3_000_000,
      'input_data_file: "f"',
      { 'warmup/f': Buffer.alloc(6 * 3_000_000, text) },
    ],
  ])('%s for a warm-up', async (_, type, elements, data, files) => {
    const [config, dir] = [warmUpOf(type, elements, data), folder(files)]
    const { result, heldMs } = await mostHeldMs(async () => warmUpRequests(config, dir))
    expect(result[0]?.batch[0]?.inputs.get('x')?.shape).toEqual([elements])
    expect(heldMs).toBeLessThan(100)
  })

  it('a file for the state of a sequence, and the state that a run leaves', async () => {
    const bytes = 200 * MiB
    const config = parseModelConfig(
      `sequence_batching { state { input_name: "a" output_name: "b" data_type: TYPE_UINT8 dims: ${bytes}
        initial_state { data_type: TYPE_UINT8 dims: ${bytes} name: "i" data_file: "f" } } }`,
      'config.pbtxt',
    )
    const dir = folder({ 'initial_state/f': Buffer.alloc(bytes, 3) })
    const loaded = await mostHeldMs(async () => implicitState(config, dir))
    const [a] = loaded.result.initial()
    expect(a?.data.byteLength).toBe(bytes)
    expect(loaded.heldMs).toBeLessThan(100)
    const run = await mostHeldMs(async () => nextState(loaded.result, [{ ...a!, name: 'b' }]))
    expect(run.result).toMatchObject([{ name: 'a', shape: [bytes] }])
    expect(Buffer.compare(run.result[0]!.data, a!.data)).toBe(0)
    expect(run.heldMs).toBeLessThan(100)
  })
})
