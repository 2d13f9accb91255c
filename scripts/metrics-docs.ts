// Part of `npm run schemas`: writes the tables of docs/metrics.md from the registries that the service answers `/metrics` with.
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { collectDefaultMetrics, Registry, type Metric } from 'prom-client'
import { GpuMetrics } from '../src/metrics/gpu-metrics.js'
import { createServiceMetrics } from '../src/metrics/service-metrics.js'
import { createClusterMetrics } from '../src/metrics/cluster-metrics.js'
import { createMirrorMetrics } from '../src/metrics/mirror-metrics.js'
import { createStoreMetrics } from '../src/metrics/store-metrics.js'
import { createTlsMetrics } from '../src/metrics/tls-metrics.js'
import { ServingMetrics } from '../src/serving/metrics/serving-metrics.js'

export type DescribedMetric = Readonly<{
  name: string
  kind: string
  labels: readonly string[]
  help: string
}>

const marks = {
  start: '<!-- metrics: start, written by `npm run schemas` -->',
  end: '<!-- metrics: end -->',
}
export const metricsPage = fileURLToPath(new URL('../docs/metrics.md', import.meta.url))

/** Labels that are only known with the values. */
const labelsOfValues: readonly (readonly [names: RegExp, labels: readonly string[]])[] = [
  [/^nv_inference_request_failure$/, ['model', 'version', 'reason']],
  [/^gantry_model_batch_memory_bytes$/, ['model', 'version', 'batch_size']],
  [/^gantry_model_server_|^nv_cpu_/, []],
  [/^nv_gpu_|^gantry_gpu_|^nv_energy_/, ['gpu_uuid']],
  [/^nv_|^gantry_model_/, ['model', 'version']],
]

/** Every metric of a section of the page, sorted by name. */
async function metricsOf(registry: Registry): Promise<DescribedMetric[]> {
  const json = await registry.getMetricsAsJSON()
  const described = registry.getMetricsAsArray().map((metric) => {
    const { name, help } = metric as unknown as { name: string; help: string }
    const kind = String(json.find((one) => one.name === name)?.type)
    return { name, kind, help, labels: labelsOf(name, metric as unknown as Metric) }
  })
  return described.sort((one, other) => (one.name < other.name ? -1 : 1))
}

function labelsOf(name: string, metric: Metric): readonly string[] {
  const { labelNames = [] } = metric as unknown as { labelNames?: readonly string[] }
  if (labelNames.length > 0) return labelNames
  return labelsOfValues.find(([names]) => names.test(name))?.[1] ?? []
}

/** Sections of the page, by their titles. */
export async function describedMetrics(): Promise<ReadonlyMap<string, readonly DescribedMetric[]>> {
  const service = new Registry()
  createServiceMetrics(service)
  const tls = new Registry()
  createTlsMetrics(tls)
  const store = new Registry()
  createStoreMetrics(store)
  const mirrors = new Registry()
  createMirrorMetrics(mirrors)
  const cluster = new Registry()
  createClusterMetrics(cluster)
  const control = new Registry()
  collectDefaultMetrics({ register: control })
  const ofService = await metricsOf(service)
  const about = (names: RegExp) => ofService.filter(({ name }) => names.test(name))
  const cameras = ofService.filter(({ labels }) => labels.includes('camera'))
  const processes = about(/^gantry_(engine|stream|model_server|execution)_/)
  const others = ofService.filter((metric) => !cameras.includes(metric) && !processes.includes(metric))
  return new Map([
    ['Cameras', cameras],
    ['Sinks, cache, models of cameras', others],
    ['Processes', processes],
    ['Models of API clients', await metricsOf(new ServingMetrics(() => []).registry)],
    ['Graphics cards', await metricsOf(new GpuMetrics(() => []).registry)],
    ['TLS', await metricsOf(tls)],
    ['Store', await metricsOf(store)],
    ['Model repositories in object stores', await metricsOf(mirrors)],
    ['Nodes of a cluster', await metricsOf(cluster)],
    ['The control process, by prom-client', await metricsOf(control)],
  ])
}

/** The page with its tables replaced. */
export async function withMetrics(page: string): Promise<string> {
  const [before, rest] = page.split(marks.start)
  const after = rest?.split(marks.end)[1]
  if (before === undefined || after === undefined) throw new Error(`${metricsPage} has lost its marks`)
  const tables = [...(await describedMetrics())].map(([title, metrics]) => {
    const rows = metrics.map(
      ({ name, kind, labels, help }) =>
        `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help.replaceAll('|', '\\|')} |`,
    )
    return [
      `## ${title}`,
      '',
      '| metric | kind | labels | meaning |',
      '| --- | --- | --- | --- |',
      ...rows,
    ].join('\n')
  })
  return `${before}${marks.start}\n\n${tables.join('\n\n')}\n\n${marks.end}${after}`
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await writeFile(metricsPage, await withMetrics(await readFile(metricsPage, 'utf8')))
