import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { readOnnxFile } from '../../src/repository/onnx-file.js'
import type { LoadedModel } from '../../src/runtime/loaded-model.js'
import { ModelManager, type ModelManagerOptions } from '../../src/serving/repository/model-manager.js'
import { FakeLoadedModel } from './fake-loaded-model.js'
import { redDetector } from './onnx-models.js'
import { silentLog } from './silent-log.js'
import { tempDir } from './temp-dir.js'

/** A small model. */
export const onnx = redDetector('uint8-nhwc')
export const config = (name: string, more = '') =>
  `name: "${name}" max_batch_size: 4
   input [{ name: "images" data_type: TYPE_UINT8 dims: [64, 64, 3] }]
   output [{ name: "output0" data_type: TYPE_FP32 dims: [6, 84] }] ${more}`
export const ensembleOf = (name: string, ...steps: string[]) =>
  `name: "${name}" platform: "ensemble"
   ensemble_scheduling { ${steps.map((step) => `step { model_name: "${step}" model_version: -1 }`).join(' ')} }`

/** A manager over real folders whose models only remember that they were opened and closed. */
export function managed(options: Partial<ModelManagerOptions> = {}) {
  const repository = options.repositories?.[0] ?? tempDir()
  const opened: FakeLoadedModel[] = []
  const manager = new ModelManager({
    repositories: [repository],
    control: 'explicit',
    load: [],
    isBuiltIn: () => false,
    open: async (context, before?: LoadedModel) => {
      // What a backend would find out.
      const file = join(context.versionDir, 'model.onnx')
      if (context.config.ensemble_scheduling === undefined) readOnnxFile(file)
      const model = new FakeLoadedModel(context, before)
      opened.push(model)
      return model
    },
    probe: () => Promise.resolve(),
    uploadDir: tempDir(),
    drainMs: 1_000,
    log: silentLog(),
    ...options,
  })
  onTestFinished(() => manager.stop())
  return { manager, repository, opened }
}

export const noOverride = { config: undefined, files: new Map<string, Uint8Array>() }
/** `name version state` of each, by name. */
export const states = (manager: ModelManager) =>
  manager.index(false).map(({ name, version, state }) => [name, version, state].join(' ').trim())
