import { ModelConfigError } from '../../repository/errors.js'
import { type Claim, type Need, poolOf } from './claims.js'

/** What an operator says is there. Without `device`, on every device, or in all if the resource is global. */
export type ResourceLimit = Readonly<{ name: string; count: number; device?: string | undefined }>

/**
 * How much there is in each pool: what was set, else the most that one instance needs, as in Triton.
 *
 * @throws ModelConfigError for a resource that is both global and of devices, and for a limit that would keep an instance waiting for ever
 */
export function resourcePools(
  claims: readonly Claim[],
  limits: readonly ResourceLimit[],
): ReadonlyMap<string, number> {
  const needs = claims.flatMap((claim) => claim.needs)
  checkKinds(needs)
  const pools = new Map<string, number>()
  for (const need of needs) {
    const limit = limitOf(need, limits)
    if (limit !== undefined && limit < need.count) throw tooSmall(need, limit)
    const pool = poolOf(need)
    pools.set(pool, limit ?? Math.max(need.count, pools.get(pool) ?? 0))
  }
  return pools
}

function limitOf({ name, device }: Need, limits: readonly ResourceLimit[]): number | undefined {
  const named = limits.filter((limit) => limit.name === name)
  const found =
    named.find((limit) => limit.device === device) ?? named.find((limit) => limit.device === undefined)
  return found?.count
}

function checkKinds(needs: readonly Need[]): void {
  const global = new Set(needs.filter(({ device }) => device === undefined).map(({ name }) => name))
  const both = needs.find(({ name, device }) => device !== undefined && global.has(name))
  if (both !== undefined)
    throw new ModelConfigError(
      `Resource "${both.name}" is present as both global and device-specific resource in the model configuration.`,
      'Give it global: true in the rate_limiter of every model, or of none.',
    )
}

function tooSmall({ name, count }: Need, limit: number): ModelConfigError {
  return new ModelConfigError(
    `Resource count for "${name}" is limited to ${limit} which will prevent scheduling of one or more model ` +
      `instances, the minimum required count is ${count}`,
    'Raise modelServer.rateLimit.resources, or lower the count in the rate_limiter of the model.',
  )
}
