/**
 * What the accounts of memory cost a run: work that is over when the loop comes round, with and without them in turn.
 *
 *     npx tsx test/bench/model-memory.bench.ts [rounds]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryUse, ownThread } from '../../src/lifecycle/memory-use.js'
import { MemoryAccounts } from '../../src/runtime/memory/memory-accounts.js'
import { timers } from '../../src/runtime/scheduler-clock.js'
import { RunRecordFile } from '../../src/processes/model-server/run-record.js'
import { quantile, report } from './bench.js'

const rounds = Number(process.argv[2] ?? 15)
const runs = 20_000
const dir = mkdtempSync(join(tmpdir(), 'gantry-bench-'))
const record = new RunRecordFile(join(dir, 'runs.json'))
const mainThread = ownThread()
const account = new MemoryAccounts({
  limitBytes: 2 ** 40,
  use: memoryUse,
  ownThreads: () => [mainThread],
  clock: timers,
  onActive: (models) => record.active(models),
  onOver: () => undefined,
}).open('tiny')
account.loaded()

/** A run is over when the loop comes round, as one in another thread is at the soonest. */
const work = () => new Promise<void>((resolve) => setImmediate(resolve))

async function usOf(run: () => Promise<void>): Promise<number> {
  const beganMs = performance.now()
  for (let count = 0; count < runs; count++) await run()
  return ((performance.now() - beganMs) / runs) * 1e3
}

const thread = ownThread()
const [without, withIt]: [number[], number[]] = [[], []]
for (let round = 0; round < rounds; round++) {
  without.push(await usOf(work))
  withIt.push(await usOf(() => account.run(thread, work)))
}
report('accounts of memory, for each run', 'us', {
  without: quantile(without, 0.5),
  with: quantile(withIt, 0.5),
  costs: quantile(
    withIt.map((us, round) => us - without[round]!),
    0.5,
  ),
  rounds,
})
rmSync(dir, { recursive: true, force: true })
