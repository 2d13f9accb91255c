import { spawn } from 'node:child_process'
import { createWriteStream, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Outcome } from './outcome.js'
import { envOf, type Workshop } from './prepare.js'
import type { Suite } from './suites.js'

/** Longest that one of Triton's scripts may take. */
const limitMs = 90 * 60_000

/** Runs the `test.sh` of a suite as it stands; what became of each of its tests. Its output goes to `<work>/<suite>.log`. */
export async function runSuite(shop: Workshop, suite: Suite, work: string): Promise<readonly Outcome[]> {
  const results = join(work, `${suite.name}.jsonl`)
  rmSync(results, { force: true })
  const log = createWriteStream(join(work, `${suite.name}.log`))
  const child = spawn('bash', ['-x', 'test.sh'], {
    cwd: join(shop.qa, suite.name),
    env: {
      ...envOf(shop),
      SERVER_TIMEOUT: '60',
      ...suite.env,
      TRITON_QA_RESULTS: results,
      TRITON_QA_SUITE: suite.name,
      TRITON_QA_TEMP: work,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  child.stdout.pipe(log)
  child.stderr.pipe(log)
  const timer = setTimeout(() => end(child.pid), limitMs)
  await new Promise((resolve) => child.on('close', resolve))
  clearTimeout(timer)
  end(child.pid)
  if (!existsSync(results)) return []
  const lines = readFileSync(results, 'utf8').trim().split('\n')
  return lines.map((line) => {
    const outcome = JSON.parse(line) as Outcome
    const needs = suite.needs?.[outcome.test]
    return needs === undefined ? outcome : { ...outcome, needs }
  })
}

/** Ends what a script left behind, too. */
function end(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Nothing is left of it.
  }
}
