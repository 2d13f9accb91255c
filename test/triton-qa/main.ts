/**
 * `npm run test:triton -- --server DIR [--client DIR] [--suites NAME,NAME] [--work DIR]`: Triton's own client examples and QA suites, as
 * they stand, against Gantry, and a table of what passes.
 *
 * DIR are checkouts of Triton's repositories `server` and `client`. The suites know their server by its ports (8000 to 8002) and end
 * what runs on them, so all of it happens in a network namespace of its own.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { keptPython } from '../../scripts/lib/kept-python.mjs'
import { examplesReach } from './examples.js'
import type { Outcome } from './outcome.js'
import { prepare } from './prepare.js'
import { runExamples } from './run-examples.js'
import { modelConfigReach, runModelConfig } from './run-model-config.js'
import { runSuite } from './run-suite.js'
import { suites } from './suites.js'
import { tableOf, type Row } from './results-table.js'

const { values } = parseArgs({
  options: {
    server: { type: 'string' },
    client: { type: 'string' },
    suites: { type: 'string' },
    work: { type: 'string', default: 'data/triton-qa' },
  },
})
const say = (text: string) => process.stderr.write(`${text}\n`)

if (process.env.TRITON_QA_PYTHON === undefined) process.exitCode = enterNamespace()
else process.exitCode = await runAll(process.env.TRITON_QA_PYTHON)

/** Begins again where the ports are free and nothing else listens. What is missing is told and ends with 2. */
function enterNamespace(): number {
  const faults = checkoutFaults()
  if (faults.length > 0) {
    for (const fault of faults) say(fault)
    return 2
  }
  const requirements = join(import.meta.dirname, 'requirements.txt')
  const python = keptPython('triton-qa', requirements, "what Triton's suites import", say)
  const again = [process.execPath, '--import', 'tsx', import.meta.filename, ...process.argv.slice(2)]
  const script = 'ip link set lo up && exec "$@"'
  const asRoot = process.getuid?.() === 0 ? [] : ['--map-root-user']
  const { status, error } = spawnSync('unshare', [...asRoot, '--net', 'sh', '-c', script, 'sh', ...again], {
    stdio: 'inherit',
    env: { ...process.env, TRITON_QA_PYTHON: python },
  })
  if (error !== undefined) say(`a network namespace of its own needs unshare (util-linux): ${error.message}`)
  return status ?? 2
}

function checkoutFaults(): string[] {
  const faults: string[] = []
  if (values.server === undefined)
    faults.push("--server is missing: a checkout of Triton's repository `server`")
  else if (!existsSync(join(values.server, 'qa/common/util.sh')))
    faults.push(`${values.server}: no checkout of Triton's server`)
  if (values.client !== undefined && !existsSync(join(values.client, 'src/python/examples')))
    faults.push(`${values.client}: no checkout of Triton's client`)
  const known = ['examples', 'L0_model_config', ...suites.map(({ name }) => name)]
  for (const name of values.suites?.split(',') ?? [])
    if (!known.includes(name)) faults.push(`--suites ${name}: there are ${known.join(', ')}`)
  return faults
}

async function runAll(python: string): Promise<number> {
  const work = resolve(values.work)
  mkdirSync(work, { recursive: true })
  const server = resolve(values.server ?? '')
  say(`laying out the suites and making their models in ${work} ...`)
  const shop = prepare(work, server, python)
  const wanted = values.suites?.split(',')
  const rows: Row[] = []
  const run = async (name: string, reach: number, outcomesOf: () => Promise<readonly Outcome[]>) => {
    if (!(wanted?.includes(name) ?? true)) return
    say(`${name} ...`)
    const outcomes = await outcomesOf()
    writeFileSync(join(work, `${name}.json`), `${JSON.stringify(outcomes, null, 1)}\n`)
    rows.push({ name, reach, outcomes })
  }
  if (values.client !== undefined) {
    const folders = { work, server, client: resolve(values.client) }
    await run('examples', examplesReach, () => runExamples(shop, folders))
  }
  await run('L0_model_config', modelConfigReach, () => runModelConfig(shop, work))
  for (const suite of suites) await run(suite.name, suite.reach, () => runSuite(shop, suite, work))
  const { text, isReached } = tableOf(rows)
  process.stdout.write(text)
  return isReached ? 0 : 1
}
