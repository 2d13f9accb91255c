import type { Log } from '../../../lifecycle/log.js'
import type { ModelInput } from '../../../repository/model-config.js'
import { modelFileIn, versionDirOf, type ModelDefinition } from '../../../repository/model-definition.js'
import { backendOf } from '../../../repository/supported-config.js'
import { printOfVersion } from '../../../repository/repository-files.js'
import { probeModel, type ProbeLimits } from './model-probe.js'
import { ProbeTurns } from './probe-turns.js'
import { ProbeVerdicts } from './probe-verdicts.js'

export type ProbeOptions = ProbeLimits &
  Readonly<{
    /** File that remembers which models were found good. */
    verdictsFile: string
    /** What changes the outcome besides files and limits, such as the version of the runtime. */
    runtime: string
    log: Log
    /** Ends the look that is under way. */
    signal: AbortSignal
  }>

/** @returns a look at one version of a model; it throws for one that is refused. Models without a file pass. */
export function createProbe(
  options: ProbeOptions,
): (definition: ModelDefinition, version: number) => Promise<void> {
  const { verdictsFile, runtime, memoryBytes, cpuSeconds, log, signal } = options
  const verdicts = new ProbeVerdicts(verdictsFile, log)
  const turns = new ProbeTurns(memoryBytes)
  const conditions = JSON.stringify([runtime, memoryBytes, cpuSeconds])
  return async (definition, version) => {
    if (backendOf(definition.config) !== 'onnxruntime') return
    const modelPath = modelFileIn(versionDirOf(definition, version), definition.config)
    const print = printOfVersion(definition.print, version)
    if (verdicts.isGood(modelPath, print, conditions)) return
    const task = { modelPath, shapes: shapesOf(definition) }
    await turns.take(() => probeModel(task, { memoryBytes, cpuSeconds }, signal))
    verdicts.keep(modelPath, print, conditions)
  }
}

function shapesOf({ config }: ModelDefinition): Record<string, readonly number[]> {
  const batch = (config.max_batch_size ?? 0) > 0 ? [1] : []
  const sizes = (input: ModelInput) => (input.reshape?.shape ?? input.dims).map((size) => Math.max(1, size))
  return Object.fromEntries(config.input.map((input) => [input.name, [...batch, ...sizes(input)]]))
}
