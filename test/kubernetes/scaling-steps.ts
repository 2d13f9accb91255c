import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onPath } from '../../scripts/lib/system-tools.mjs'
import { ServerProcess } from '../support/child.js'
import { freePort } from '../support/free-port.js'
import { renderedChart } from '../support/helm.js'
import { RedService } from '../support/red-service.js'
import { until } from '../support/until.js'
import { clusterValues, fullName, namespace, release, withChart } from './chart-steps.js'
import { type ControlPlane, succeeded } from './control-plane.js'
import { documentedRules, MetricsAdapter, promQuery } from './metrics-adapter.js'
import { fewestReady } from './ready-watch.js'

const pods = [0, 1, 2].map((ordinal) => `${fullName}-${ordinal}`)

type Scaler = Readonly<{
  status?: {
    desiredReplicas: number
    currentMetrics?: readonly { pods?: { metric: { name: string }; current: { averageValue: string } } }[]
  }
}>

/** A Prometheus that asks a real service, once for each node of the release: no node of it runs. */
async function startPrometheus(folder: string, metricsPort: number): Promise<[ServerProcess, string]> {
  if (!onPath('prometheus')) throw new Error('prometheus is missing: sudo apt-get install prometheus')
  const targets = [`127.0.0.1:${metricsPort}`]
  const config = {
    global: { scrape_interval: '2s' },
    scrape_configs: [
      { job_name: 'gantry', static_configs: pods.map((pod) => ({ targets, labels: { namespace, pod } })) },
    ],
  }
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
  const address = `127.0.0.1:${await freePort()}`
  const args = [
    `--config.file=${folder}/prometheus.yml`,
    `--storage.tsdb.path=${folder}/prometheus`,
    `--web.listen-address=${address}`,
  ]
  return [ServerProcess.start('prometheus', args, join(folder, 'prometheus.log')), `http://${address}`]
}

/** Load of a node as the rule of the documentation has it. */
async function cameraLoad(prometheus: string): Promise<number | undefined> {
  const rule = documentedRules().find(({ name }) => name.as === 'gantry_camera_load')
  const query = (rule?.metricsQuery ?? '')
    .replaceAll('<<.GroupBy>>', 'pod')
    .replaceAll('<<.LabelMatchers>>', 'pod!=""')
  const values = (await promQuery(prometheus, query)).map(({ value }) => Number(value[1]))
  return values.length === pods.length && values.every((value) => value > 0) ? values[0] : undefined
}

/** The number of nodes comes from what a real service says of itself, by an HPA and by the query for KEDA. */
export async function scalesByLoad(plane: ControlPlane): Promise<void> {
  await using red = await RedService.start()
  const [server, prometheus] = await startPrometheus(plane.folder, red.service.metricsPort)
  const adapter = await MetricsAdapter.start(prometheus, namespace)
  try {
    const load = await until('the load of the service', () => cameraLoad(prometheus), 90_000, 500)
    await plane.apply(adapter.objects)
    await until('metrics by the API server', () => metricsOfPods(plane), 60_000, 500)
    const autoscaling = {
      by: 'hpa',
      minReplicas: 2,
      maxReplicas: 6,
      // Three nodes with 1.6 of what they may have are to be five.
      cameraLoad: Number((load / 1.6).toFixed(3)),
      pendingRequests: 4,
    }
    await scalesByHpa(plane, autoscaling)
    await asksTheSameOfKeda(prometheus, autoscaling)
  } finally {
    await adapter.end()
    await server.end('SIGKILL')
  }
}

/** Whether the API server tells the load of each pod, as the HPA asks for it. */
async function metricsOfPods(plane: ControlPlane): Promise<boolean> {
  const path = `/apis/custom.metrics.k8s.io/v1beta2/namespaces/${namespace}/pods/*/gantry_camera_load`
  const { items } = JSON.parse(succeeded(await plane.kubectl(['get', '--raw', path]))) as { items: unknown[] }
  return items.length === pods.length
}

async function scalesByHpa(
  plane: ControlPlane,
  autoscaling: Readonly<{ cameraLoad: number }>,
): Promise<void> {
  const values = { ...clusterValues, autoscaling }
  const upgrade = async () => succeeded(await withChart(plane, ['upgrade', release], values))
  // Handing the number over costs no node.
  assert.equal(await fewestReady(plane, { namespace, release, count: 3 }, upgrade), 3)
  const scaler = () => plane.get<Scaler>('hpa', fullName, '-n', namespace)
  const status = await until(
    'another number of nodes',
    async () => {
      const { status: now } = await scaler()
      return now !== undefined && now.desiredReplicas > 3 ? now : undefined
    },
    150_000,
    250,
  )
  const told = Object.fromEntries(
    (status.currentMetrics ?? []).map(({ pods: metric }) => [
      metric?.metric.name,
      metric?.current.averageValue,
    ]),
  ) as Record<string, string>
  assert.equal(told['gantry_pending_requests'], '0')
  assert.equal(
    status.desiredReplicas,
    Math.ceil((3 * quantity(told['gantry_camera_load'])) / autoscaling.cameraLoad),
  )
  // The load goes on changing, and may ask for one more meanwhile; fewer come after ten minutes alone.
  const nodes = async () => {
    const { spec } = await plane.get<{ spec: { replicas: number } }>('statefulset', fullName, '-n', namespace)
    return spec.replicas
  }
  await until('the nodes', async () => (await nodes()) >= status.desiredReplicas, 30_000)
  // A later upgrade leaves the number alone.
  succeeded(await withChart(plane, ['upgrade', release], { ...values, podAnnotations: { changed: 'yes' } }))
  assert.ok((await nodes()) >= status.desiredReplicas)
}

function quantity(text = ''): number {
  return text.endsWith('m') ? Number(text.slice(0, -1)) / 1_000 : Number(text)
}

async function asksTheSameOfKeda(prometheus: string, autoscaling: object): Promise<void> {
  const objects = renderedChart({
    ...clusterValues,
    fullnameOverride: fullName,
    autoscaling: { ...autoscaling, by: 'keda', prometheusAddress: prometheus },
  })
  const { spec } = objects.find(({ kind }) => kind === 'ScaledObject') as { spec: { triggers: Trigger[] } }
  const [byLoad, byRequests] = await Promise.all(
    spec.triggers.map(async ({ metadata: { query } }) =>
      Number((await promQuery(prometheus, query))[0]?.value[1]),
    ),
  )
  const load = await cameraLoad(prometheus)
  assert.ok(
    Math.abs((byLoad ?? Number.NaN) / 3 / (load ?? Number.NaN) - 1) < 0.2,
    `${byLoad} and 3 times ${load}`,
  )
  assert.equal(byRequests, 0)
}

type Trigger = Readonly<{ metadata: Readonly<{ query: string }> }>
