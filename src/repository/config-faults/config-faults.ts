import type { ModelConfig } from '../model-config.js'
import { batchingFaults } from './batching-faults.js'
import type { ConfigFault } from './fault.js'
import { instanceFaults } from './instance-faults.js'
import { metricFaults } from './metric-faults.js'
import { modelFaults } from './model-faults.js'
import { optimizationFaults } from './optimization-faults.js'
import { rangeFaults } from './range-faults.js'
import { sequenceFaults } from './sequence-faults.js'
import { sizeFaults } from './size-faults.js'
import { tensorFaults } from './tensor-faults.js'

/**
 * Everything in a configuration that cannot mean what it says, whoever runs the model.
 *
 * @see triton-inference-server/core, src/model_config_utils.cc, ValidateModelConfig and what it calls
 */
export function configFaults(config: ModelConfig): readonly ConfigFault[] {
  return [
    ...modelFaults(config),
    ...batchingFaults(config),
    ...tensorFaults(config),
    ...sequenceFaults(config),
    ...instanceFaults(config),
    ...optimizationFaults(config),
    ...metricFaults(config),
    ...rangeFaults(config),
    ...sizeFaults(config),
  ]
}

/** Faults as sentences, each with field, value and fix. */
export function faultText(faults: readonly ConfigFault[]): string {
  return faults.map(({ field, problem, fix }) => `${field}: ${problem}; ${fix}`).join('. ')
}
