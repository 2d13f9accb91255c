import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { parseModelConfig } from '../../src/repository/model-config-text.js'
import type { Log } from '../../src/lifecycle/log.js'
import { onnxRuntimeBackend } from '../../src/backends/onnxruntime/onnxruntime-backend.js'
import type { InferRequest } from '../../src/runtime/infer.js'
import { createScheduledModel } from '../../src/runtime/create-scheduled-model.js'
import type { ScheduledModel } from '../../src/runtime/scheduled-model.js'
import { StatisticsRecorder } from '../../src/runtime/statistics-recorder.js'
import type { Tensor } from '../../src/tensors/tensor.js'
import { silentLog } from './silent-log.js'
import { tempDir } from './temp-dir.js'

/** Loads a model of one version by the onnxruntime backend. It is closed when the test ends. */
export async function scheduledModel(
  onnx: Uint8Array,
  configText = '',
  log: Log = silentLog(),
  name = 'm',
): Promise<ScheduledModel> {
  const modelDir = join(tempDir(), name)
  const versionDir = join(modelDir, '1')
  mkdirSync(versionDir, { recursive: true })
  writeFileSync(join(versionDir, 'model.onnx'), onnx)
  const statistics = new StatisticsRecorder(name, '1')
  const config = parseModelConfig(configText, 'config.pbtxt')
  const backend = onnxRuntimeBackend({ providers: ['cpu'], devices: [0], intraOpThreads: 1 })
  const opened = await backend.open({ name, version: '1', config, versionDir, log })
  const model = await createScheduledModel(opened, {
    name,
    version: '1',
    modelDir,
    statistics,
    log,
    onHung: (reason) => {
      throw new Error(reason)
    },
  })
  onTestFinished(() => model.stop(1_000))
  return model
}

export function inferRequest(inputs: readonly Tensor[], more: Partial<InferRequest> = {}): InferRequest {
  return {
    model: 'm',
    version: '',
    id: '',
    inputs,
    outputs: [],
    priority: 0,
    timeoutUs: 0,
    sequence: undefined,
    parameters: {},
    signal: undefined,
    ...more,
  }
}

export function fp32(name: string, shape: readonly number[], values: readonly number[]): Tensor {
  return { name, datatype: 'FP32', shape, data: new Uint8Array(Float32Array.from(values).buffer) }
}

/** Elements of a tensor of FP32. */
export function floats({ data }: Tensor): number[] {
  return Array.from(new Float32Array(data.slice().buffer))
}
