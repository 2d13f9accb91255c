import type { ModelInstanceGroup, ModelConfig } from '../../repository/model-config.js'

/** So much of a resource for the time of a run. */
export type Need = Readonly<{
  /** As configured. */
  name: string
  /** `undefined` for a global resource; else each device has its own. */
  device: string | undefined
  count: number
}>

/** What an instance needs for a run. */
export type Claim = Readonly<{
  needs: readonly Need[]
  /** 1 or more: at 2, half as many turns as at 1 while both wait. */
  priority: number
}>

/** Name of a pool: a global resource, or the share of one device. */
export function poolOf({ name, device }: Pick<Need, 'name' | 'device'>): string {
  return device === undefined ? name : `${name}@${device}`
}

/** One for each instance, in the order in which the groups of a model start them; empty if none needs a resource. */
export function instanceClaims({ instance_group }: ModelConfig): readonly Claim[] {
  const active = instance_group.filter((group) => group.passive !== true)
  if (active.every((group) => (group.rate_limiter?.resources.length ?? 0) === 0)) return []
  return active.flatMap((group) =>
    devicesOf(group).flatMap((device) =>
      Array.from({ length: Math.max(1, group.count ?? 1) }, () => claimOf(group, device)),
    ),
  )
}

function devicesOf({ kind, gpus }: ModelInstanceGroup): readonly string[] {
  if (gpus.length > 0) return gpus.map((gpu) => `gpu${gpu}`)
  return [kind === 'KIND_GPU' ? 'gpu0' : 'cpu']
}

function claimOf({ rate_limiter }: ModelInstanceGroup, device: string): Claim {
  const needs = (rate_limiter?.resources ?? []).map(({ name = '', global = false, count = 0 }) => ({
    name,
    device: global ? undefined : device,
    count,
  }))
  return { needs, priority: Math.max(1, rate_limiter?.priority ?? 1) }
}
