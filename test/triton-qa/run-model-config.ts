import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Outcome } from './outcome.js'
import type { Workshop } from './prepare.js'
import { tritonServer } from './run-examples.js'
import { putStandIns } from './stand-ins.mjs'

/** Folders of cases below `L0_model_config`, and whether their models are to load. */
const groups = [
  { folder: 'noautofill_platform', loads: false },
  { folder: 'autofill_noplatform/common', loads: false },
  { folder: 'autofill_noplatform/ensemble', loads: false },
  { folder: 'autofill_noplatform/onnx', loads: false },
  { folder: 'autofill_noplatform_success/ensemble', loads: true },
  { folder: 'autofill_noplatform_success/onnx', loads: true },
] as const

/** Fewest cases of L0_model_config that load, or are refused, as in Triton. */
export const modelConfigReach = 105

/**
 * Loads the configurations of L0_model_config by request, one case after the other, into one server; its `test.sh` starts one for each.
 *
 * Their models are not in Triton's repository: stub_models.py makes ONNX files with the tensors that each configuration names.
 */
export async function runModelConfig(shop: Workshop, work: string): Promise<readonly Outcome[]> {
  const suite = join(shop.qa, 'L0_model_config')
  const repository = join(work, 'model-config')
  rmSync(repository, { recursive: true, force: true })
  mkdirSync(repository)
  const server = await tritonServer(shop, work, [
    `--model-repository=${repository}`,
    '--model-control-mode=explicit',
    '--exit-on-error=false',
  ])
  const outcomes: Outcome[] = []
  try {
    for (const { folder, loads } of groups)
      for (const name of readdirSync(join(suite, folder)).sort())
        outcomes.push(await tryCase(shop, join(suite, folder, name), { repository, loads, group: folder }))
  } finally {
    server.kill()
    await new Promise((resolve) => server.once('close', resolve))
  }
  return outcomes
}

async function tryCase(
  shop: Workshop,
  from: string,
  { repository, loads, group }: Readonly<{ repository: string; loads: boolean; group: string }>,
): Promise<Outcome> {
  const name = basename(from)
  const isOne = existsSync(join(from, 'config.pbtxt')) || existsSync(join(from, '1'))
  const models = isOne ? [name] : readdirSync(from).filter((each) => !each.startsWith('expected'))
  for (const model of models) {
    const to = join(repository, model)
    cpSync(isOne ? from : join(from, model), to, { recursive: true })
    if (group === 'noautofill_platform') asOnnx(join(to, 'config.pbtxt'))
  }
  if (group !== 'autofill_noplatform/common')
    execFileSync(shop.python, [join(import.meta.dirname, 'stub_models.py'), repository])
  putStandIns(repository)
  const faults: string[] = []
  for (const model of models) {
    const fault = await ask(`${model}/load`)
    if (fault !== undefined) faults.push(`${model}: ${fault}`)
  }
  for (const model of models) await ask(`${model}/unload`)
  for (const model of models) rmSync(join(repository, model), { recursive: true, force: true })
  return {
    suite: 'L0_model_config',
    test: `${group}/${name}`,
    variant: '',
    outcome: (faults.length === 0) === loads ? 'passed' : 'failed',
    reason: loads ? faults.join('; ') : `${faults.join('; ') || 'was loaded'}; Triton: ${expectedOf(from)}`,
  }
}

/** What L0_model_config's test.sh does with these. */
function asOnnx(config: string): void {
  if (!existsSync(config)) return
  const lines = readFileSync(config, 'utf8')
    .split('\n')
    .filter((line) => !/platform:/.test(line))
  writeFileSync(config, [...lines, 'platform: "onnxruntime_onnx"', ''].join('\n'))
}

function expectedOf(from: string): string {
  const file = join(from, 'expected')
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
}

/** @returns What the server says where it refuses. */
async function ask(what: string): Promise<string | undefined> {
  const response = await fetch(`http://localhost:8000/v2/repository/models/${what}`, {
    method: 'POST',
    body: '{}',
  })
  return response.ok ? undefined : await response.text()
}
