import type { ModelInstanceGroup, ModelConfig } from '../model-config.js'
import { type ConfigFault, isGiven, listed, repeated } from './fault.js'

/** Each has a thread and a session: 200 of a model of 100 bytes took 2.8 GB and 13 s to start. */
const mostInstances = 256

/** Number and place of instances. */
export function instanceFaults(config: ModelConfig): readonly ConfigFault[] {
  return [...groupFaults(config), ...sumFaults(config), ...passiveFaults(config)]
}

/** Of all groups; 0 for a model that has none and gets those of its backend. */
export function configuredInstances({ instance_group: groups }: ModelConfig): number {
  return groups.reduce(
    (sum, { count: each = 1, gpus }) => sum + Math.max(1, each) * Math.max(1, gpus.length),
    0,
  )
}

function sumFaults(config: ModelConfig): readonly ConfigFault[] {
  const { name: model = '' } = config
  const count = configuredInstances(config)
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

function passiveFaults({ name: model = '', instance_group: groups }: ModelConfig): readonly ConfigFault[] {
  if (groups.length === 0 || groups.some(({ passive }) => passive !== true)) return []
  return [
    {
      field: 'instance_group.passive',
      problem: `every instance group of model ${model} is passive: no instance would run requests`,
      fix: 'leave passive out of one instance_group at least',
    },
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
      ...resourceFaults(group, `${field}.rate_limiter.resources`, title),
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

function resourceFaults(
  { rate_limiter }: ModelInstanceGroup,
  field: string,
  title: string,
): readonly ConfigFault[] {
  const names = (rate_limiter?.resources ?? []).map(({ name }) => name ?? '')
  return [
    ...(names.includes('')
      ? [{ field, problem: `${title} needs a resource without a name`, fix: 'write its name' }]
      : []),
    ...repeated(names.filter(isGiven)).map((name) => ({
      field,
      problem: `${title} needs resource "${name}" more than once`,
      fix: 'write how many it needs in all',
    })),
  ]
}

function isWithoutGpus({ kind }: ModelInstanceGroup): boolean {
  return kind === 'KIND_CPU' || kind === 'KIND_MODEL'
}
