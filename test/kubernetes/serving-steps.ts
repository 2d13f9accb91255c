import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { keptPython } from '../../scripts/lib/kept-python.mjs'
import { freePort } from '../support/free-port.js'
import { GantryProcess } from '../support/gantry-process.js'
import { until } from '../support/until.js'
import type { ControlPlane } from './control-plane.js'
import { say } from './say.js'

const root = join(import.meta.dirname, '../..')
const deploy = (path: string) => readFileSync(join(root, 'deploy', path), 'utf8')

/** A Python with the packages of Azure ML and Kubeflow Pipelines. */
export const platformPython = (): string =>
  keptPython('kubernetes', join(root, 'test/kubernetes/requirements.txt'), 'azure-ai-ml and kfp', say)

type Served = Readonly<{
  args: readonly string[]
  env: Readonly<Record<string, string>>
  /** Port in the container on which health and models are asked. */
  port: number
  live: string
  ready: string
  /** A name under which the platform asks. */
  host: string
}>

/** Runs a container's command line here, with places of this machine, and asks its model as a client does. */
async function serves(folder: string, { args, env, port, live, ready, host }: Served): Promise<void> {
  const repository = join(folder, 'repository/models')
  mkdirSync(repository, { recursive: true })
  cpSync(join(root, 'models/ppe_detect_int8'), join(repository, 'ppe_detect_int8'), { recursive: true })
  const ports = new Map<string, number>()
  for (const inside of ['8000', '8001', '8002', '8080', '9000']) ports.set(inside, await freePort())
  const here = (text: string) =>
    text
      .replace('/app/', `${root}/`)
      .replace(/\/mnt\/models|\/var\/gantry\/\S+/, repository)
      .replace(/=(\/data|\/tmp\/gantry)$/, `=${folder}/data`)
      .replace(/(-port=)(\d+)$/, (_, flag: string, inside: string) => `${flag}${ports.get(inside)}`)
  // What the image sets by itself, where the command line does not.
  const byDefault = ['http', 'grpc', 'metrics'].flatMap((name, index) =>
    args.some((arg) => arg.startsWith(`--${name}-port`)) ? [] : [`--${name}-port=${8_000 + index}`],
  )
  const process = new GantryProcess([...args, ...byDefault].map(here), {
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, here(value)])),
  })
  const url = `http://127.0.0.1:${ports.get(String(port))}`
  const status = async (path: string) => (await fetch(url + path)).status
  try {
    await until('its life', async () => (await status(live)) === 200, 60_000)
    await until('its readiness', async () => (await status(ready)) === 200, 120_000)
    const data = Array.from({ length: 416 * 416 * 3 }, () => 0)
    const inputs = [{ name: 'images', datatype: 'UINT8', shape: [1, 416, 416, 3], data }]
    const infer = `${url}/v2/models/ppe_detect_int8/infer`
    const answer = await fetch(infer, { method: 'POST', body: JSON.stringify({ inputs }) })
    assert.equal(answer.status, 200, process.stderr)
    const { outputs } = (await answer.json()) as { outputs: readonly { shape: number[] }[] }
    assert.deepEqual(outputs[0]?.shape, [1, 11, 3549])
    assert.equal(await statusUnderName(url, host), 200)
    assert.equal(await statusUnderName(url, 'elsewhere.example'), 403)
  } finally {
    await process.kill()
  }
}

function statusUnderName(url: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(`${url}/v2`, { headers: { host } }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    }).on('error', reject)
  })
}

type Probe = Readonly<{ httpGet: Readonly<{ path: string; port: number }> }>
type Runtime = Readonly<{
  spec: Readonly<{
    containers: readonly [
      Readonly<{
        args: readonly string[]
        env: readonly Readonly<{ name: string; value?: string }>[]
        livenessProbe: Probe
        readinessProbe: Probe
      }>,
    ]
  }>
}>

/** The container of the ServingRuntime answers its probes and its models. */
export async function servesForKserve(plane: ControlPlane): Promise<void> {
  const [container] = (parse(deploy('kserve/serving-runtime.yaml')) as Runtime).spec.containers
  const env = container.env.flatMap(({ name, value }) =>
    value === undefined ? [] : [[name, value.replaceAll('$(POD_NAMESPACE)', 'factory')] as const],
  )
  const { livenessProbe, readinessProbe, args } = container
  await serves(join(plane.folder, 'kserve'), {
    args,
    env: Object.fromEntries(env),
    port: readinessProbe.httpGet.port,
    live: livenessProbe.httpGet.path,
    ready: readinessProbe.httpGet.path,
    host: 'ppe-predictor.factory',
  })
}

type Route = Readonly<{ port: number; path: string }>
type Deployment = Readonly<{
  environment: Readonly<{ inference_config: Readonly<{ liveness_route: Route; readiness_route: Route }> }>
  environment_variables: Readonly<Record<string, string>>
}>

const loadDeployment = `
import sys
from azure.ai.ml import load_online_deployment, load_online_endpoint
deployment = load_online_deployment(sys.argv[1] + "/deployment.yml")
endpoint = load_online_endpoint(sys.argv[1] + "/endpoint.yml")
assert deployment.endpoint_name == endpoint.name
print(deployment.model.path)
`

/** Azure's own library takes the files, without Azure; the container answers their routes. */
export async function servesForAzure(plane: ControlPlane): Promise<void> {
  const load = (path: string) => promisify(execFile)(platformPython(), ['-c', loadDeployment, path])
  const { stdout } = await load(join(root, 'deploy/azureml'))
  assert.equal(stdout.trim().split('\n').at(-1), join(root, 'models'))
  const wrong = join(plane.folder, 'wrong')
  cpSync(join(root, 'deploy/azureml'), wrong, { recursive: true })
  writeFileSync(
    join(wrong, 'deployment.yml'),
    deploy('azureml/deployment.yml').replace('instance_count: 1', 'instance_count: few'),
  )
  await assert.rejects(load(wrong), /instance_count|Not a valid/)

  const file = parse(deploy('azureml/deployment.yml')) as Deployment
  const [, command = '[]'] = /^CMD (\[.*\])$/m.exec(deploy('azureml/environment/Dockerfile')) ?? []
  const { liveness_route: live, readiness_route: ready } = file.environment.inference_config
  await serves(join(plane.folder, 'azure'), {
    args: JSON.parse(command) as string[],
    env: file.environment_variables,
    port: ready.port,
    live: live.path,
    ready: ready.path,
    host: 'gantry-ppe.westeurope.inference.ml.azure.com',
  })
}
