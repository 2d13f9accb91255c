import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { loadPipeline } from '../../src/config/load.js'
import { serverSchema } from '../../src/config/server.js'
import {
  chartFolder,
  helm,
  leastValues,
  lintedChart,
  refusalOf,
  renderedChart,
  type KubernetesObject,
} from '../support/helm.js'
import { tempDir } from '../support/temp-dir.js'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

const brokers = { kafka: { brokers: ['kafka:9092'] } }
const cluster = { apiVersion: 'gantry/v1', cluster: { id: 'plant' }, sinks: brokers }
const modelsAlone = { apiVersion: 'gantry/v1', engines: 0, models: { control: 'none' } }

/** Ways in which the chart is used; each is linted, and its pipeline read by the service. */
const ways: Readonly<Record<string, object>> = {
  'as little as possible': {},
  'without a token': { token: {}, pipeline: { apiVersion: 'gantry/v1', server: { insecure: true } } },
  'models alone': { pipeline: modelsAlone, replicas: 4 },
  'a cluster with everything': {
    replicas: 3,
    pipeline: { ...cluster, server: { maxBodyBytes: 20_971_520, drainSeconds: 40 } },
    tls: { secret: 'gantry-tls' },
    gpu: { enabled: true, count: 2, runtimeClassName: 'nvidia' },
    serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
    alerts: { enabled: true, gantryUrl: 'https://gantry.example.com/' },
    networkPolicy: {
      clients: [{ namespaceSelector: {} }],
      egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] }],
    },
    preStopSeconds: 5,
  },
  'an autoscaler': { pipeline: cluster, autoscaling: { by: 'hpa', pendingRequests: 4 } },
  KEDA: {
    pipeline: cluster,
    autoscaling: { by: 'keda', pendingRequests: 4, prometheusAddress: 'http://prometheus:9090' },
    persistence: { enabled: false },
  },
}

type Container = Readonly<{
  image: string
  env: readonly object[]
  resources: Readonly<{ limits: Readonly<Record<string, unknown>> }>
  readinessProbe: Readonly<{ httpGet: Readonly<{ path: string; scheme: string }> }>
}>
type StatefulSet = Readonly<{
  replicas?: number
  template: {
    metadata: { annotations: Record<string, string> }
    spec: {
      terminationGracePeriodSeconds: number
      securityContext: Record<string, unknown>
      automountServiceAccountToken: boolean
      containers: [Container]
    }
  }
}>

function only(objects: readonly KubernetesObject[], kind: string): KubernetesObject {
  const found = objects.filter((object) => object.kind === kind)
  if (found.length !== 1) throw new Error(`${found.length} objects are a ${kind}`)
  return found[0]!
}

const setOf = (values: object = {}) => only(renderedChart(values), 'StatefulSet').spec as StatefulSet
const containerOf = (values: object) => setOf(values).template.spec.containers[0]

if (helm === undefined) process.stderr.write('\nSKIPPED: helm is missing, the chart is not checked\n')

describe.skipIf(helm === undefined)('the chart', () => {
  it.each(Object.entries(ways))('has nothing that a linter finds: %s', (_, values) => {
    expect(lintedChart({ ...leastValues, ...values })).toBe('')
  })

  it.each(Object.entries(ways))('makes a pipeline that the service accepts: %s', (_, values) => {
    const text = only(renderedChart(values), 'ConfigMap').data?.['pipeline.yaml'] ?? ''
    // Certificates are read with the settings, and are not here.
    const { tls: _tls, ...server } = (parse(text) as { server: Record<string, unknown> }).server
    const settings = { ...(parse(text) as Record<string, unknown>), server } as Record<string, unknown> & {
      cluster?: { tls?: unknown }
    }
    delete settings.cluster?.tls
    const path = join(tempDir(), 'pipeline.yaml')
    writeFileSync(path, JSON.stringify(settings))
    const { config } = loadPipeline(path, {
      env: { POD_NAME: 'plant-gantry-1', GANTRY_TOKEN: 'a-token-of-many-letters' },
    })
    expect([config.server.host, config.store.path]).toEqual(['0.0.0.0', '/data'])
    if ('cluster' in settings) {
      expect(config.cluster?.node).toBe('plant-gantry-1')
      expect(config.cluster?.url).toMatch(
        /^https?:\/\/plant-gantry-1\.plant-gantry-nodes\.factory\.svc:8000$/,
      )
    }
  })

  it.each([
    ['image.repository is missing', { image: {} }],
    ["at '/image/repository'", { image: { repository: 'registry.example/gantry:1.0' } }],
    ['token.secret is missing', { token: {} }],
    ["additional properties 'replica' not allowed", { replica: 2 }],
    ["at '/replicas': got string, want integer", { replicas: 'two' }],
    ["at '/gpu/count': minimum: got 0, want 1", { gpu: { count: 0 } }],
    ["at '/persistence/size': '10 GB' does not match", { persistence: { size: '10 GB' } }],
    ["at '/autoscaling/by': value must be one of 'none', 'hpa', 'keda'", { autoscaling: { by: 'both' } }],
    ["at '/podDisruptionBudget/maxUnavailable'", { podDisruptionBudget: { maxUnavailable: 0 } }],
    ["at '/pipeline/apiVersion': value must be 'gantry/v1'", { pipeline: { apiVersion: 'v1' } }],
    ['3 nodes without pipeline.cluster would each run every camera', { replicas: 3 }],
    ['4 nodes without pipeline.cluster would each run every camera', { autoscaling: { by: 'hpa' } }],
    [
      'pipeline.cluster needs brokers',
      { pipeline: { apiVersion: 'gantry/v1', cluster: { id: 'plant' } }, replicas: 2 },
    ],
    [
      'pipeline.server.token is set by the chart: name its Secret in token.secret',
      { pipeline: { server: { token: 'x' } } },
    ],
    ['pipeline.server.tls is set by the chart', { pipeline: { server: { tls: {} } } }],
    ['pipeline.server.httpPort is set by the chart', { pipeline: { server: { httpPort: 80 } } }],
    ['pipeline.store.path is set by the chart', { pipeline: { store: { path: '/x' } } }],
    ['pipeline.cluster.node is set by the chart', { pipeline: { ...cluster, cluster: { node: 'x' } } }],
    [
      'autoscaling.maxReplicas (2) is below autoscaling.minReplicas (3)',
      { pipeline: cluster, autoscaling: { by: 'hpa', minReplicas: 3, maxReplicas: 2 } },
    ],
    [
      'autoscaling has nothing to go by',
      { pipeline: cluster, autoscaling: { by: 'hpa', cameraLoad: 0, pendingRequests: 0 } },
    ],
    ['there are no cameras', { pipeline: modelsAlone, autoscaling: { by: 'hpa', pendingRequests: 4 } }],
    ['autoscaling.prometheusAddress is missing', { pipeline: cluster, autoscaling: { by: 'keda' } }],
  ])('R187: refuses wrong values: %s', (message, values) => {
    expect(refusalOf({ ...leastValues, ...values })).toContain(message)
  })

  it('runs as the user of the image, on a root that it cannot write, without an account of Kubernetes', () => {
    const [, uid] = /^USER (\d+):\d+$/m.exec(read('Dockerfile')) ?? []
    const { securityContext, automountServiceAccountToken, containers } = setOf().template.spec
    expect(securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: Number(uid),
      fsGroup: Number(uid),
      seccompProfile: { type: 'RuntimeDefault' },
    })
    expect(automountServiceAccountToken).toBe(false)
    expect(containers[0]).toMatchObject({
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
    })
  })

  it('R20: grants the time that the service takes to stop, and what a hook takes before', () => {
    const needed = serverSchema.parse({}).drainSeconds + 10
    const grace = (values: object) => setOf(values).template.spec.terminationGracePeriodSeconds
    expect(grace({})).toBe(needed)
    expect(grace({ pipeline: { apiVersion: 'gantry/v1', server: { drainSeconds: 60 } } })).toBe(70)
    expect(grace({ preStopSeconds: 5 })).toBe(needed + 5)
  })

  it('asks the probe that fits, by TLS where there is a certificate', () => {
    const probe = (values: object) => containerOf(values).readinessProbe.httpGet
    expect(probe({})).toMatchObject({ path: '/readyz', scheme: 'HTTP' })
    expect(probe({ pipeline: modelsAlone })).toMatchObject({ path: '/v2/health/ready' })
    expect(probe({ tls: { secret: 'gantry-tls' } })).toMatchObject({ scheme: 'HTTPS' })
  })

  it('takes cards, and the image that can use them', () => {
    const { image, resources } = containerOf({ gpu: { enabled: true, count: 2 } })
    expect(image).toBe('registry.example/gantry:0.1.0-cuda')
    expect(resources.limits['nvidia.com/gpu']).toBe(2)
    expect(containerOf({}).resources.limits).toEqual({ memory: '6Gi' })
  })

  it('starts nodes anew for other settings, and leaves their number to an autoscaler', () => {
    const [before, after] = [{}, { pipeline: cluster }].map(
      (values) => setOf(values).template.metadata.annotations['checksum/pipeline'],
    )
    expect(before).not.toBe(after)
    expect(setOf({ pipeline: cluster, replicas: 2 }).replicas).toBe(2)
    expect(setOf({ pipeline: cluster, autoscaling: { by: 'hpa' } }).replicas).toBeUndefined()
  })

  it('hands the token and passwords over by reference', () => {
    const password = {
      name: 'KAFKA_PASSWORD',
      valueFrom: { secretKeyRef: { name: 'kafka', key: 'password' } },
    }
    const { env } = containerOf({ env: [password] })
    expect(env).toContainEqual(password)
    expect(env).toContainEqual({
      name: 'GANTRY_TOKEN',
      valueFrom: { secretKeyRef: { name: 'gantry', key: 'token' } },
    })
    expect(only(renderedChart(), 'ConfigMap').data?.['pipeline.yaml']).toContain('token: ${GANTRY_TOKEN}')
  })

  it('lets nobody but nodes and those that are named in, where they are named', () => {
    const policy = (values: object) =>
      only(renderedChart(values), 'NetworkPolicy').spec as {
        policyTypes: string[]
        ingress: { from?: object[] }[]
        egress?: object[]
      }
    expect(policy({})).toMatchObject({ policyTypes: ['Ingress'] })
    const named = policy(ways['a cluster with everything'] ?? {})
    expect(named.policyTypes).toEqual(['Ingress', 'Egress'])
    expect(named.ingress[0]?.from).toEqual([
      { namespaceSelector: {} },
      { podSelector: expect.anything() as unknown },
    ])
    expect(named.egress).toHaveLength(3)
    expect(policy({ networkPolicy: { egress: [] } }).egress).toHaveLength(2)
  })

  it('raises the alerts of deploy/prometheus', () => {
    const rules = only(renderedChart({ alerts: { enabled: true } }), 'PrometheusRule').spec
    expect(rules).toEqual(parse(read('deploy/prometheus/alerts.yml')))
    const told = JSON.stringify(renderedChart(ways['a cluster with everything']))
    expect(told).toContain('"https://gantry.example.com/docs/runbooks/service-down.md"')
    expect(told).not.toContain('$externalLabels')
  })

  it('scales by metrics that the service has', () => {
    const text = JSON.stringify(renderedChart(ways['KEDA']))
    const asked = [...text.matchAll(/\b(?:gantry|nv)_[a-z_]+(?=\{)/g)].map(([name]) => name)
    expect(new Set(asked)).toEqual(
      new Set(['gantry_camera_state', 'gantry_headroom_cameras', 'nv_inference_pending_request_count']),
    )
    const known = read('docs/metrics.md')
    expect(asked.filter((name) => !known.includes(`\`${name}\``))).toEqual([])
  })
})

describe('the folder of the chart', () => {
  const chart = (path: string) => readFileSync(join(chartFolder, path), 'utf8')

  it('has the alerts of deploy/prometheus: cp deploy/prometheus/alerts.yml deploy/helm/gantry/files/', () => {
    expect(chart('files/alerts.yml')).toBe(read('deploy/prometheus/alerts.yml'))
  })

  it('is of the version of the service', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string }
    expect(parse(chart('Chart.yaml'))).toMatchObject({ version, appVersion: version })
  })

  it('has a schema of every value, and no value besides', () => {
    const { properties } = JSON.parse(chart('values.schema.json')) as { properties: object }
    const named = Object.keys(properties).filter((name) => name !== 'global')
    expect(named.sort()).toEqual(Object.keys(parse(chart('values.yaml')) as object).sort())
  })
})
