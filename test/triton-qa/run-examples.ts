import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/until.js'
import { exampleModels } from './example-models.js'
import { examples, type Example } from './examples.js'
import { envOf, type Workshop } from './prepare.js'
import type { Outcome } from './outcome.js'

const limitMs = 120_000

/** Runs each Python example of Triton's client repository as it stands, against a server with the models that they expect. */
export async function runExamples(
  shop: Workshop,
  folders: Readonly<{ work: string; server: string; client: string }>,
): Promise<readonly Outcome[]> {
  const { work, server, client } = folders
  const models = exampleModels(work, server, shop.python)
  const log = join(work, 'examples.log')
  rmSync(log, { force: true })
  const outcomes: Outcome[] = []
  for (const count of [undefined, 7, 8] as const) {
    const flags = count === undefined ? [] : ['--model-control-mode=explicit', '--load-model=*']
    const repository = count === undefined ? models.all : models.counted[count]
    const gantry = await tritonServer(shop, work, [
      `--model-repository=${repository}`,
      '--allow-client-shm=true',
      ...flags,
    ])
    try {
      for (const example of examples.filter((each) => each.models === count))
        outcomes.push(
          runExample(example, { shop, client, log, picture: join(server, 'qa/images/vulture.jpeg') }),
        )
    } finally {
      gantry.kill()
      await new Promise((resolve) => gantry.once('close', resolve))
    }
  }
  return outcomes
}

function runExample(
  { script, runs = [''], needs }: Example,
  { shop, client, log, picture }: Readonly<{ shop: Workshop; client: string; log: string; picture: string }>,
): Outcome {
  const failed = runs.flatMap((run) => {
    const args = run.split(' ').filter(Boolean)
    const { status, stdout, stderr } = spawnSync(
      shop.python,
      [
        join(client, 'src/python/examples', script),
        ...args.map((each) => (each === 'IMAGE' ? picture : each)),
      ],
      { encoding: 'utf8', timeout: limitMs, env: envOf(shop) },
    )
    appendFileSync(log, `=== ${script} ${run}: ${status}\n${stdout}${stderr}`)
    const last = `${stdout}${stderr}`.trim().split('\n').at(-1) ?? ''
    return status === 0 ? [] : [`${run}: ${last}`.trim()]
  })
  const outcome = failed.length === 0 ? 'passed' : 'failed'
  return {
    suite: 'examples',
    test: script,
    variant: '',
    outcome,
    reason: failed.join('; '),
    ...(needs !== undefined && { needs }),
  }
}

/** The shim as the suites start it, once it is ready. */
export async function tritonServer(
  shop: Workshop,
  work: string,
  flags: readonly string[],
): Promise<ChildProcess> {
  const child = spawn(join(shop.opt, 'bin/tritonserver'), flags, {
    env: { ...envOf(shop), TRITON_QA_TEMP: work },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  const ready = async () =>
    child.exitCode !== null || (await fetch('http://localhost:8000/v2/health/ready')).ok
  await until(`tritonserver ${flags.join(' ')}`, ready, 60_000, 200).catch((error: unknown) => {
    child.kill()
    throw error
  })
  if (child.exitCode !== null) throw new Error(`tritonserver ${flags.join(' ')} ended with ${child.exitCode}`)
  return child
}
