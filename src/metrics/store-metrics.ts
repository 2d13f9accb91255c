import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

export type StoreMetrics = ReturnType<typeof createStoreMetrics>

/** Series of the store of records. */
export function createStoreMetrics(registry: Registry) {
  const registers = [registry]
  return {
    up: new Gauge({
      name: 'gantry_store_up',
      help: '1 while records are stored before they are published.',
      registers,
    }),
    bytes: new Gauge({ name: 'gantry_store_bytes', help: 'Bytes that stored records take.', registers }),
    records: new Counter({
      name: 'gantry_store_records_total',
      help: 'Records by what became of them in the store: stored, unstored (published all the same), deleted, lost with a damaged file.',
      labelNames: ['result'],
      registers,
    }),
    commit: new Histogram({
      name: 'gantry_store_commit_seconds',
      help: 'Handing records to the store until they are committed.',
      buckets: [0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
      registers,
    }),
  }
}
