import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { renderedChart } from '../support/helm.js'
import { clusterValues, namespace } from './chart-steps.js'
import type { CommandResult, ControlPlane } from './control-plane.js'
import { define } from './definitions.js'

const root = join(import.meta.dirname, '../..')

/** Asks the API server whether it would take the objects, each field of which it must know. */
function tried(plane: ControlPlane, objects: readonly object[]): Promise<CommandResult> {
  const args = ['-n', namespace, 'apply', '--dry-run=server', '--validate=strict', '-f', '-']
  return plane.kubectl(args, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
}

/** Those of KEDA, the Prometheus Operator and all others that the chart can make. */
export async function makesWhatIsKnown(plane: ControlPlane): Promise<void> {
  await define(plane)
  const common = {
    ...clusterValues,
    tls: { secret: 'gantry-tls' },
    gpu: { enabled: true },
    preStopSeconds: 5,
    serviceMonitor: { enabled: true },
    alerts: { enabled: true },
    networkPolicy: { egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] }] },
  }
  const kinds = new Set<string>()
  for (const by of ['keda', 'hpa']) {
    const autoscaling = { by, pendingRequests: 4, prometheusAddress: 'http://prometheus:9090' }
    const objects = renderedChart({ ...common, autoscaling })
    const { code, stdout, stderr } = await tried(plane, objects)
    assert.equal(code, 0, stderr)
    assert.equal(stdout.trim().split('\n').length, objects.length)
    for (const { kind } of objects) kinds.add(kind)
  }
  assert.equal(kinds.size, 10)
  const wrong = renderedChart(common).map((object) => ({
    ...object,
    spec: { ...(object.spec as object), x: 1 },
  }))
  assert.match(
    (await tried(plane, wrong)).stderr,
    /unknown field "x" in com\.coreos\.monitoring\.v1\.PrometheusRule/,
  )
}

/** The files of deploy/kserve are of kinds and fields that KServe has. */
export async function fitsKserve(plane: ControlPlane): Promise<void> {
  const read = (file: string) => parse(readFileSync(join(root, 'deploy/kserve', file), 'utf8')) as object
  const [runtime, service] = [read('serving-runtime.yaml'), read('inference-service.yaml')]
  const { code, stderr } = await tried(plane, [runtime, service])
  assert.equal(code, 0, stderr)
  assert.match((await tried(plane, [{ ...runtime, spec: {} }])).stderr, /missing required field "containers"/)
}
