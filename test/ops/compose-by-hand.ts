/**
 * `npx tsx test/ops/compose-by-hand.ts`: what docker-compose.yml runs, without Docker, on loopback addresses and in a temporary folder.
 * Broker, Redis, camera, Gantry and Prometheus get the settings of that file and of `deploy/`; only addresses and folders are
 * others. Prints as JSON whether all are up and what each expression of the dashboard gives, and ends with 1 if something is amiss.
 *
 * The looping RTSP server of the demo stands in for mediamtx. Grafana is not run: its expressions are asked of Prometheus, while a
 * client of the stream listens and one of the models asks.
 */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { parse } from 'yaml'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { ServerProcess } from '../support/child.js'
import { freePort } from '../support/free-port.js'
import { resolveJars } from '../support/kafka-jars.js'
import { until } from '../support/until.js'

type Service = Readonly<{ command?: string[]; environment?: Record<string, string> }>
type Answer = Readonly<{ data: { result: unknown[] } }>
type Metadata = Readonly<{ data: Record<string, unknown> }>
type Groups = Readonly<{ data: { groups: { rules: { name: string; health: string; state: string }[] }[] } }>
type Targets = Readonly<{ data: { activeTargets: { health: string; lastError: string }[] } }>

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const { services } = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, Service>
}
const folder = mkdtempSync(join(tmpdir(), 'gantry-compose-'))
const started: ServerProcess[] = []
let authorization = ''
const cameras = new LoopingRtspServer()

function run(name: string, command: string, args: readonly string[]): void {
  started.push(ServerProcess.start(command, args, join(folder, `${name}.log`)))
}

/** `KAFKA_LOG_DIRS` is `log.dirs`, as the image reads it. */
async function startKafka(): Promise<number> {
  const resolved = await resolveJars()
  if ('missing' in resolved) throw new Error(resolved.missing)
  const [port, controller, host] = [await freePort(), await freePort(), await freePort()]
  const lines = Object.entries(services['kafka']?.environment ?? {}).map(([name, value]) => {
    const here = value
      .replaceAll(/(?:localhost|127\.0\.0\.1)?:9093/g, `127.0.0.1:${controller}`)
      .replaceAll(/(?:kafka)?:9092/g, `127.0.0.1:${port}`)
      .replaceAll(/(?:127\.0\.0\.1)?:29092/g, `127.0.0.1:${host}`)
      .replace('/var/lib/kafka/data', join(folder, 'kafka'))
    return `${name.replace('KAFKA_', '').toLowerCase().replaceAll('_', '.')}=${here}\n`
  })
  const properties = join(folder, 'server.properties')
  writeFileSync(properties, lines.join(''))
  const java = ['-Xmx384m', '-XX:TieredStopAtLevel=1', '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn']
  const classes = [...java, '-cp', join(resolved.jars, '*')]
  const id = `A${randomBytes(16).toString('base64url').slice(1)}`
  const format = [...classes, 'kafka.tools.StorageTool', 'format', '-t', id, '-c', properties]
  const { status, stderr } = spawnSync('java', format, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  run('kafka', 'java', [...classes, 'kafka.Kafka', properties])
  return port
}

async function startRedis(): Promise<number> {
  const port = await freePort()
  const [program = '', ...settings] = services['redis']?.command ?? []
  run('redis', program, [...settings, '--port', String(port), '--bind', '127.0.0.1', '--dir', folder])
  return port
}

/** The path and clip that `deploy/compose/mediamtx.yml` names. */
async function startCamera(): Promise<number> {
  const { paths } = parse(read('deploy/compose/mediamtx.yml')) as {
    paths: Record<string, { runOnInit: string }>
  }
  for (const [path, { runOnInit }] of Object.entries(paths)) {
    const clip = /-i \/clips\/(\S+)/.exec(runOnInit)?.[1] ?? ''
    await cameras.addStream(`/${path}`, join(root, 'pipelines/demo/clips', clip))
  }
  return (await cameras.start()).port
}

/** As the service `token` does it. */
function makeToken(): void {
  const file = join(folder, 'token')
  const args = (services['token']?.command ?? []).map((arg) => arg.replace(/^\/run\/gantry\/token$/, file))
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'dist/cli/main.js'), ...args], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stderr)
  authorization = `Bearer ${readFileSync(file, 'utf8').trim()}`
}

async function startGantry(
  kafka: number,
  redis: number,
  camera: number,
): Promise<{ http: number; metrics: number }> {
  const pipeline = read('deploy/compose/pipeline.yaml')
    .replace('kafka:9092', `127.0.0.1:${kafka}`)
    .replace('redis:6379', `127.0.0.1:${redis}`)
    .replace('camera:8554', `127.0.0.1:${camera}`)
    .replace('/app/models', join(root, 'models'))
    .replace('path: /data', `path: ${join(folder, 'data')}`)
  writeFileSync(join(folder, 'pipeline.yaml'), pipeline)
  const [http, metrics] = [await freePort(), await freePort()]
  Object.assign(process.env, services['gantry']?.environment, {
    GANTRY__SERVER__TOKEN_FILE: join(folder, 'token'),
    GANTRY__SERVER__HOST: '127.0.0.1',
    GANTRY__SERVER__HTTP_PORT: String(http),
    GANTRY__SERVER__GRPC_PORT: String(await freePort()),
    GANTRY__SERVER__METRICS_PORT: String(metrics),
  })
  const args = (services['gantry']?.command ?? []).map((arg) =>
    arg.replace('/etc/gantry/pipeline.yaml', join(folder, 'pipeline.yaml')),
  )
  run('gantry', process.execPath, [join(root, 'dist/cli/main.js'), ...args])
  return { http, metrics }
}

async function startPrometheus(metrics: number): Promise<string> {
  const port = await freePort()
  const config = read('deploy/prometheus/prometheus.yml')
    .replace('gantry:8002', `127.0.0.1:${metrics}`)
    .replace('/run/gantry/token', join(folder, 'token'))
  writeFileSync(join(folder, 'prometheus.yml'), config)
  writeFileSync(join(folder, 'alerts.yml'), read('deploy/prometheus/alerts.yml'))
  const args = (services['prometheus']?.command ?? []).map((arg) =>
    arg.replace('/etc/prometheus/', `${folder}/`).replace('=/prometheus', `=${join(folder, 'tsdb')}`),
  )
  run('prometheus', 'prometheus', [...args, `--web.listen-address=127.0.0.1:${port}`])
  return `http://127.0.0.1:${port}/api/v1`
}

/** With the variables as Grafana fills them in for all cameras and a source of the default interval. */
function expressions(): string[] {
  return [...read('deploy/grafana/dashboards/gantry.json').matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)].map(
    ([, text = '""']) =>
      (JSON.parse(text) as string).replaceAll('$__rate_interval', '1m').replaceAll('$camera', '.*'),
  )
}

/** Somebody who listens, and somebody who has a model run. */
async function beClients(http: number): Promise<void> {
  const url = `127.0.0.1:${http}`
  const model = `http://${url}/v2/models/ppe_detect`
  await until(
    'model',
    async () => (await fetch(`${model}/ready`, { headers: { authorization } })).ok,
    120_000,
    500,
  )
  const stream = new WebSocket(`ws://${url}/api/v1/stream`, 'gantry.v1', { headers: { authorization } })
  stream.once('open', () => stream.send(JSON.stringify({ type: 'subscribe' })))
  await once(stream, 'message')
  const shape = [1, 416, 416, 3]
  const parameters = { binary_data_size: 416 * 416 * 3 }
  const header = JSON.stringify({ inputs: [{ name: 'images', datatype: 'UINT8', shape, parameters }] })
  const response = await fetch(`${model}/infer`, {
    method: 'POST',
    headers: { authorization, 'inference-header-content-length': String(header.length) },
    body: Buffer.concat([Buffer.from(header), Buffer.alloc(parameters.binary_data_size)]),
  })
  if (!response.ok) throw new Error(await response.text())
}

async function ask<T>(url: string): Promise<T> {
  return (await (await fetch(url)).json()) as T
}

async function examine(api: string): Promise<Record<string, unknown>> {
  const count = async (expression: string): Promise<number> =>
    (await ask<Answer>(`${api}/query?query=${encodeURIComponent(expression)}`)).data.result.length
  await until(
    'records in Kafka',
    () => count('gantry_sink_records_total{result="delivered"} > 20'),
    240_000,
    1_000,
  )
  await until(
    'results in Redis',
    () => count('gantry_cache_operations_total{result="ok"} > 0'),
    60_000,
    1_000,
  )
  const series = new Map<string, number>()
  const empty = async (): Promise<string[]> => {
    for (const expression of expressions()) series.set(expression, await count(expression))
    return [...series.keys()].filter((expression) => series.get(expression) === 0)
  }
  await until('series', async () => (await empty()).length === 0, 90_000, 1_000).catch(() => undefined)
  const { activeTargets } = (await ask<Targets>(`${api}/targets`)).data
  const rules = (await ask<Groups>(`${api}/rules`)).data.groups.flatMap((group) => group.rules)
  const metrics = [...series.keys()].flatMap((expression) => expression.match(/\b(?:gantry|nv)_\w+/g) ?? [])
  const known = Object.keys((await ask<Metadata>(`${api}/metadata`)).data)
  return {
    targets: activeTargets.map(({ health, lastError }) => `${health}${lastError}`),
    rules: rules.length,
    unhealthyRules: rules.filter(({ health }) => health !== 'ok').map(({ name }) => name),
    firing: rules.filter(({ state }) => state === 'firing').map(({ name }) => name),
    expressions: series.size,
    empty: await empty(),
    unknownMetrics: metrics.filter((name) => !known.includes(name.replace(/_(bucket|sum|count)$/, ''))),
    series: Object.fromEntries(series),
  }
}

try {
  const [kafka, redis, camera] = [await startKafka(), await startRedis(), await startCamera()]
  makeToken()
  const { http, metrics } = await startGantry(kafka, redis, camera)
  const prometheus = await startPrometheus(metrics)
  await beClients(http)
  const report = await examine(prometheus)
  process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`)
  const { targets, unhealthyRules, firing, empty, unknownMetrics } = report as Record<string, string[]>
  const amiss = [
    targets?.filter((target) => target !== 'up'),
    unhealthyRules,
    firing,
    empty,
    unknownMetrics,
  ].flat()
  if (amiss.length > 0) process.exitCode = 1
} catch (error) {
  for (const { logPath } of started)
    process.stderr.write(`${logPath}\n${readFileSync(logPath, 'utf8').slice(-2_000)}\n`)
  process.stderr.write(`${String(error)}\n`)
  process.exitCode = 1
} finally {
  for (const server of started.reverse()) await server.end('SIGTERM')
  await cameras.stop()
  rmSync(folder, { recursive: true, force: true })
}
