import type { ExecutionProvider } from '../../config/inference.js'
import { ModelConfigError } from '../../repository/errors.js'
import type { ModelInstanceGroup } from '../../repository/model-config.js'
import { deviceOf, missingProviderReason, takesDevice } from './providers.js'

/** Where one instance of a model runs. */
export type Placement = Readonly<{
  /** Tried in this order. */
  providers: readonly ExecutionProvider[]
  deviceId: number
}>

/** Instances of a group on CPU that gives no count, as in Triton's ONNX backend. */
const defaultCpuCount = 2

/** Where groups can run that do not say it. */
export type GroupPlaces = Readonly<{
  providers: readonly ExecutionProvider[]
  /** GPUs by number. */
  devices: readonly number[]
  /** Why a provider cannot even be tried; tests have a GPU of their own. */
  missing?: typeof missingProviderReason | undefined
}>

/**
 * Groups with kind, count and GPUs filled in. A model without groups has one, on a GPU if there is a provider for one; a group on GPUs that
 * names none is on all of them, as with Triton.
 *
 * @throws ModelConfigError for a group on a GPU where no configured provider runs on one, or none of them is installed
 */
export function completeGroups(
  groups: readonly ModelInstanceGroup[],
  model: string,
  { providers, devices, missing = missingProviderReason }: GroupPlaces,
): readonly ModelInstanceGroup[] {
  const given: readonly ModelInstanceGroup[] =
    groups.length > 0 ? groups : [{ gpus: [], profile: [], secondary_devices: [] }]
  const byNumber = providers.some((provider) => takesDevice(provider) && missing(provider) === undefined)
  return given.map((group, index) => {
    const kind = kindOf(group, providers, missing)
    const count = group.count ?? 0
    const name = group.name === undefined || group.name === '' ? `${model}_${index}` : group.name
    if (kind === 'KIND_GPU' && onGpu(providers).length === 0)
      throw new ModelConfigError(
        `instance_group[${index}].kind: instance group ${name} of model ${model} has kind KIND_GPU but server does not support GPUs: inference.providers are [${providers.join(', ')}]`,
        'Write KIND_CPU, or add cuda to inference.providers.',
      )
    const reasons = onGpu(providers).map((provider) => missing(provider))
    if (kind === 'KIND_GPU' && group.passive !== true && reasons.every((reason) => reason !== undefined))
      throw new ModelConfigError(
        `instance_group[${index}].kind: instance group ${name} of model ${model} has kind KIND_GPU but no provider for a GPU is installed: ${reasons.join('; ')}`,
        'Install one, or write KIND_CPU.',
      )
    return {
      ...group,
      name,
      kind,
      gpus: byNumber && kind !== 'KIND_CPU' && group.gpus.length === 0 ? devices : group.gpus,
      count: count > 0 ? count : kind === 'KIND_CPU' ? defaultCpuCount : 1,
    }
  })
}

/** The place of each instance, over all complete groups that take part: `count` on each GPU of a group. */
export function placements(
  groups: readonly ModelInstanceGroup[],
  providers: readonly ExecutionProvider[],
): readonly Placement[] {
  return groups
    .filter((group) => group.passive !== true)
    .flatMap((group) => {
      const devices = group.gpus.length > 0 ? group.gpus : [0]
      return devices.flatMap((deviceId) =>
        Array.from({ length: group.count ?? 1 }, () => ({
          providers: providersOf(group, providers),
          deviceId,
        })),
      )
    })
}

/** A GPU that is asked for is not replaced by the CPU in silence. */
function providersOf(
  { kind }: ModelInstanceGroup,
  providers: readonly ExecutionProvider[],
): readonly ExecutionProvider[] {
  if (kind === 'KIND_CPU') return ['cpu']
  return kind === 'KIND_GPU' ? onGpu(providers) : providers
}

function onGpu(providers: readonly ExecutionProvider[]): readonly ExecutionProvider[] {
  return providers.filter((provider) => deviceOf(provider) === 'gpu')
}

/** AUTO becomes CPU where no provider for a GPU is at hand; else it stays, and falls back on the CPU if the GPU fails. */
function kindOf(
  { kind = 'KIND_AUTO', gpus }: ModelInstanceGroup,
  providers: readonly ExecutionProvider[],
  missing: typeof missingProviderReason,
): NonNullable<ModelInstanceGroup['kind']> {
  if (kind === 'KIND_CPU' || kind === 'KIND_GPU') return kind
  if (gpus.length > 0) return 'KIND_GPU'
  const usable = providers.filter((provider) => missing(provider) === undefined)
  return usable[0] === undefined || deviceOf(usable[0]) === 'cpu' ? 'KIND_CPU' : kind
}
