import { readModel } from '../../repository/model-definition.js'
import { type OnnxModel, openOnnxModel } from '../../repository/onnx-model.js'
import { modelNames } from '../../repository/repository-files.js'
import { type Processor, thisProcessor } from '../../backends/onnxruntime/processor.js'
import { saturationOf } from '../../backends/onnxruntime/wide-weights.js'
import type { Finding } from '../findings.js'
import type { ProviderState } from '../../backends/onnxruntime/provider-look.js'
import { runsOnGpu } from './provider-check.js'

/** Warns of every model that would run on this processor and whose int8 weights it adds up wrongly. Broken models are left out. @param states - of the providers */
export function checkInt8(
  repositories: readonly string[],
  states: readonly ProviderState[],
  processor: Processor = thisProcessor(),
): Finding[] {
  if (runsOnGpu(states)) return []
  const seen = new Set<string>()
  return repositories.flatMap((dir) =>
    namesIn(dir).flatMap((name) => {
      if (seen.has(name)) return []
      seen.add(name)
      return checkModel(dir, name, processor)
    }),
  )
}

function checkModel(repository: string, name: string, processor: Processor): Finding[] {
  const model = attempt(() => openModel(repository, name))
  const saturation = model === undefined ? undefined : attempt(() => saturationOf(model, processor))
  return saturation === undefined ? [] : [{ subject: `model ${name}`, state: 'warning', ...saturation }]
}

function openModel(repository: string, name: string): OnnxModel | undefined {
  const entry = readModel(repository, name, 'server')
  return entry.backend === 'onnxruntime' ? openOnnxModel(entry) : undefined
}

function namesIn(repository: string): readonly string[] {
  return attempt(() => modelNames(repository)) ?? []
}

/** What is broken is the finding of the check that needs it. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
