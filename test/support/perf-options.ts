import type { PerfListener, PerfOptions } from '../../src/tools/perf/run-perf.js'

/** Short windows, and whatever differs. */
export function quickPerf(url: string, more: Partial<PerfOptions> = {}): PerfOptions {
  return {
    url,
    client: {},
    model: { name: 'plain' },
    load: { kind: 'concurrency', range: { first: 1, last: 1, step: 1 } },
    batchSize: 1,
    shapes: new Map(),
    inputData: 'zeros',
    seed: 1,
    windowMs: 100,
    mostWindows: 3,
    within: 9,
    quantile: undefined,
    limitMs: undefined,
    byHalves: false,
    ...more,
  }
}

export const unheard: PerfListener = {
  begun: () => undefined,
  window: () => undefined,
  level: () => undefined,
}
