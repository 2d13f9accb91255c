import type { InstanceGroup, ModelConfig } from '../model-config.js'
import { type ConfigFault, listed } from './fault.js'

/** Each has a thread and a session; more than that end the process for want of threads or memory. */
const mostInstances = 1000

/** Number and place of instances. */
export function instanceFaults(config: ModelConfig): readonly ConfigFault[] {
  return [...groupFaults(config), ...sumFaults(config)]
}

function sumFaults({ name: model = '', instance_group: groups }: ModelConfig): readonly ConfigFault[] {
  const count = groups.reduce(
    (sum, { count: each = 1, gpus }) => sum + Math.max(1, each) * Math.max(1, gpus.length),
    0,
  )
  return [
    ...(count > mostInstances
      ? [
          {
            field: 'instance_group.count',
            problem: `model ${model} has ${count} instances`,
            fix: `write at most ${mostInstances}`,
          },
        ]
      : []),
  ]
}

function groupFaults(config: ModelConfig): readonly ConfigFault[] {
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
