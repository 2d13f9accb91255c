import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyModelConfig } from '../../../src/repository/model-config.js'
import { runTrial } from '../../../src/tools/optimize/trial.js'
import type { TrialTask } from '../../../src/tools/optimize/trial-task.js'
import { addSubOnnx } from '../../support/model-repository.js'
import { endlessOnnx } from '../../support/onnx-models.js'
import { descendants } from '../../support/processes.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'

const never = new AbortController().signal

function task(onnx: Uint8Array, more: Partial<TrialTask> = {}): TrialTask {
  const versionDir = join(tempDir(), 'model', '1')
  mkdirSync(versionDir, { recursive: true })
  writeFileSync(join(versionDir, 'model.onnx'), onnx)
  return {
    name: 'model',
    versionDir,
    config: { ...emptyModelConfig, backend: 'onnxruntime' },
    provider: 'cpu',
    load: { kind: 'concurrency', levels: [1, 2] },
    inputData: 'zeros',
    shapes: {},
    seed: 1,
    windowMs: 50,
    mostWindows: 4,
    ...more,
  }
}

describe('a trial', () => {
  it('measures each level in a process of its own, and its memory', async () => {
    const result = await runTrial(task(addSubOnnx()), never)
    if (!result.ok) throw new Error(result.error.message)
    expect(result.levels.map(({ level }) => level)).toEqual([1, 2])
    for (const { inferencesPerSecond, latencyUs, errors } of result.levels) {
      expect(inferencesPerSecond).toBeGreaterThan(10)
      expect(latencyUs.p99).toBeGreaterThanOrEqual(latencyUs.p50)
      expect(errors).toBe(0)
    }
    expect(result.levels[0]?.splitUs.server?.computeInfer).toBeGreaterThan(0)
    expect(result.peakBytes).toBeGreaterThan(20 * 1024 ** 2)
  })

  it('ends early where it is far behind, and measures no further level', async () => {
    const result = await runTrial(task(addSubOnnx(), { stopBelow: 1e9 }), never)
    expect(result).toMatchObject({ ok: true, levels: [{ level: 1, cutShort: true }] })
  })

  it('measures no further level where one is beyond the limit', async () => {
    const result = await runTrial(task(addSubOnnx(), { limitMs: 1e-6 }), never)
    expect(result).toMatchObject({ ok: true, levels: [{ level: 1, cutShort: false }] })
  })

  it('tells why a configuration cannot be used', async () => {
    expect(await runTrial(task(Buffer.from('no model')), never)).toMatchObject({
      ok: false,
      error: { code: 'GANTRY_MODEL_INVALID' },
    })
    const wrong = { ...emptyModelConfig, parameters: { intra_op_thread_count: { string_value: 'many' } } }
    expect(await runTrial(task(addSubOnnx(), { config: wrong }), never)).toMatchObject({
      ok: false,
      error: { code: 'GANTRY_MODEL_CONFIG' },
    })
  })

  it('R56: tells of a process that dies', async () => {
    const begun = runTrial(task(endlessOnnx()), never)
    await until('its process', () => trialProcess() !== undefined)
    process.kill(trialProcess()!.pid, 'SIGKILL')
    expect(await begun).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining('its process ended with SIGKILL') as string },
    })
  })

  it('is ended by the signal, and leaves no process', async () => {
    const ended = new AbortController()
    const begun = runTrial(task(endlessOnnx()), ended.signal)
    ended.abort()
    await expect(begun).rejects.toThrow(/abort/i)
    expect(trialProcess()).toBeUndefined()
  })
})

function trialProcess() {
  return descendants(process.pid).find(({ command }) => command.includes('trial-main'))
}
