import { Counter, Gauge, type Registry } from 'prom-client'

/** Series of model repositories in object stores; a service without one has none of them. */
export type MirrorMetrics = ReturnType<typeof createMirrorMetrics>

export function createMirrorMetrics(registry: Registry) {
  const registers = [registry]
  return {
    looks: new Counter({
      name: 'gantry_repository_looks_total',
      help: 'Looks at a model repository in an object store: good, or failed, after which what was fetched before is read.',
      labelNames: ['repository', 'result'] as const,
      registers,
    }),
    fetchedBytes: new Counter({
      name: 'gantry_repository_fetched_bytes_total',
      help: 'Bytes of the objects that were fetched whole of a model repository in an object store.',
      labelNames: ['repository'] as const,
      registers,
    }),
    lastGood: new Gauge({
      name: 'gantry_repository_last_look_timestamp_seconds',
      help: 'Unix time of the last good look at a model repository in an object store; 0 before the first one.',
      labelNames: ['repository'] as const,
      registers,
    }),
  }
}
