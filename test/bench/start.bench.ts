/**
 * How soon `npm start` shows its page where everything is there. `npx tsx test/bench/start.bench.ts [rounds]`
 *
 * `start`, ms: `page` from the command to the page, `ready` to `/readyz`, `version` of `gantry --version` for comparison. The build
 * must be there (`npm run build`).
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nowMs } from '../../src/lifecycle/clock.js'
import { GantryProcess, freely, startScript } from '../support/gantry-process.js'
import { until } from '../support/until.js'
import { quantile, report, undisturbed } from './bench.js'

async function start(): Promise<{ versionMs: number; pageMs: number; readyMs: number }> {
  const storePath = mkdtempSync(join(tmpdir(), 'gantry-bench-'))
  const firstMs = nowMs()
  await new GantryProcess(['--version']).ended()
  const startedMs = nowMs()
  const gantry = new GantryProcess(freely(storePath), { script: startScript })
  try {
    const url = await gantry.httpUrl()
    await (await fetch(url)).text()
    const pageMs = nowMs() - startedMs
    await until('readiness', async () => (await fetch(`${url}/readyz`)).ok, 30_000)
    const readyMs = nowMs() - startedMs
    gantry.child.kill('SIGTERM')
    await gantry.ended()
    return { versionMs: startedMs - firstMs, pageMs, readyMs }
  } finally {
    await gantry.kill()
    rmSync(storePath, { recursive: true, force: true })
  }
}

const taken: Awaited<ReturnType<typeof start>>[] = []
for (let round = 0; round < Number(process.argv[2] ?? 5); round++) taken.push(await undisturbed(start))
const figures = (key: keyof (typeof taken)[number]) => taken.map((round) => round[key])
report('start', 'ms', {
  rounds: taken.length,
  page: quantile(figures('pageMs'), 0.5),
  slowest_page: Math.max(...figures('pageMs')),
  ready: quantile(figures('readyMs'), 0.5),
  version: quantile(figures('versionMs'), 0.5),
})
