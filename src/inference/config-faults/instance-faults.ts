import type { InstanceGroup, ModelConfig } from '../model-config.js'
import { type ConfigFault, listed } from './fault.js'

/** Number and place of instances. */
export function instanceFaults(config: ModelConfig): readonly ConfigFault[] {
  const { name: model = '' } = config
  return config.instance_group.flatMap((group, index) => {
    const { name = '', count = 0, gpus } = group
    const title = `instance group ${name === '' ? `${model}_${index}` : name} of model ${model}`
    const field = `instance_group[${index}]`
    return [
      ...(count < 0
        ? [
            {
              field: `${field}.count`,
              problem: `${title} has a count of ${count}`,
              fix: 'write how many instances there are, from 1',
            },
          ]
        : []),
      ...gpus
        .filter((gpu) => gpu < 0)
        .map((gpu) => ({
          field: `${field}.gpus`,
          problem: `${title} specifies invalid or unsupported gpu id ${gpu}`,
          fix: 'write numbers of GPUs, from 0',
        })),
      ...(isWithoutGpus(group) && gpus.length > 0
        ? [
            {
              field: `${field}.gpus`,
              problem: `${title} has kind ${group.kind} but specifies one or more GPUs: ${listed(gpus)}`,
              fix: 'write KIND_GPU, or leave gpus out',
            },
          ]
        : []),
    ]
  })
}

function isWithoutGpus({ kind }: InstanceGroup): boolean {
  return kind === 'KIND_CPU' || kind === 'KIND_MODEL'
}
