import type { ModelConfig } from '../model-config.js'
import { providerOptionFaults } from '../provider-options.js'
import { type ConfigFault, isGiven, repeated } from './fault.js'

/** By device, those that Triton's backends know. */
const accelerators = {
  gpu_execution_accelerator: ['tensorrt', 'cuda', 'auto_mixed_precision', 'gpu_io'],
  cpu_execution_accelerator: ['openvino'],
} as const

/** Accelerators that there are not, and options that theirs are not. */
export function optimizationFaults(config: ModelConfig): readonly ConfigFault[] {
  return [...acceleratorFaults(config), ...providerOptionFaults(config)]
}

function acceleratorFaults({ name: model = '', optimization }: ModelConfig): readonly ConfigFault[] {
  const given = optimization?.execution_accelerators
  return (['gpu_execution_accelerator', 'cpu_execution_accelerator'] as const).flatMap((device) => {
    const names = (given?.[device] ?? []).map(({ name }) => name ?? '')
    const known: readonly string[] = accelerators[device]
    const field = `optimization.execution_accelerators.${device}`
    return [
      ...names.flatMap((name, index) =>
        known.includes(name)
          ? []
          : [
              {
                field: `${field}[${index}].name`,
                problem: `unknown Execution Accelerator '${name}' is requested for ${model}`,
                fix: `write one of: ${known.join(', ')}`,
              },
            ],
      ),
      ...repeated(names.filter(isGiven)).map((name) => ({
        field,
        problem: `Execution Accelerator '${name}' is requested more than once for ${model}`,
        fix: 'leave one of them',
      })),
    ]
  })
}
