import assert from 'node:assert/strict'
import { parse } from 'yaml'
import { chartFolder, leastValues } from '../support/helm.js'
import { until } from '../support/until.js'
import { succeeded, type CommandResult, type ControlPlane } from './control-plane.js'
import { isReady, podsOf, zones, type Pod } from './machines.js'
import { fewestReady } from './ready-watch.js'

export const namespace = 'factory'
export const release = 'plant'
/** Its StatefulSet, ConfigMap and so on. */
export const fullName = 'plant-gantry'

const all = { namespace, release, count: 3 }

export const clusterValues = {
  ...leastValues,
  replicas: 3,
  env: [{ name: 'KAFKA_PASSWORD', valueFrom: { secretKeyRef: { name: 'kafka', key: 'password' } } }],
  pipeline: {
    apiVersion: 'gantry/v1',
    cluster: { id: 'plant' },
    sinks: { kafka: { brokers: ['kafka:9092'] } },
  },
}

/** `helm install`, `upgrade` and so on with values, which waits until all is ready. */
export function withChart(
  plane: ControlPlane,
  args: readonly string[],
  values: object,
): Promise<CommandResult> {
  const place = [chartFolder, '-n', namespace, '--wait', '--timeout', '2m', '-f', '-']
  return plane.helm([...args, ...place], JSON.stringify(values))
}

type Claim = Readonly<{ spec: { volumeName: string }; status: { phase: string } }>

/** Each node has a disk, and runs on a machine and in a zone of its own. */
export async function installs(plane: ControlPlane): Promise<void> {
  succeeded(await withChart(plane, ['install', release], clusterValues))
  const pods = await podsOf(plane, namespace, release)
  assert.deepEqual(
    pods.map(({ metadata }) => metadata.name).sort(),
    [0, 1, 2].map((n) => `${fullName}-${n}`),
  )
  assert.ok(pods.every(isReady))
  const machinesOfPods = pods.map(({ spec }) => spec.nodeName).sort()
  assert.deepEqual(machinesOfPods, zones.map((zone) => `machine-${zone}`).sort())
  const claims = pods.map(
    ({ spec }) => spec.volumes.find(({ name }) => name === 'data')?.persistentVolumeClaim,
  )
  assert.equal(new Set(claims.map((claim) => claim?.claimName)).size, 3)
  assert.ok(pods.every(({ spec }) => !spec.volumes.some(({ name }) => name.startsWith('kube-api-access'))))
}

/** Pods that the strictest standard forbids are kept out of the namespace in which those of the chart run. */
export async function keepsOthersOut(plane: ControlPlane): Promise<void> {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'root' },
    spec: { containers: [{ name: 'root', image: 'x' }] },
  }
  const refused = await plane.kubectl(['-n', namespace, 'create', '-f', '-'], JSON.stringify(pod))
  assert.match(refused.stderr, /violates PodSecurity "restricted/)
}

/** Its account may do what everybody may, and nothing else. */
export async function hasNoRights(plane: ControlPlane): Promise<void> {
  const as = [`--as=system:serviceaccount:${namespace}:${fullName}`, '-n', namespace]
  const rights = [
    ['get', 'pods'],
    ['list', 'secrets'],
    ['get', 'configmaps'],
    ['create', 'pods/exec'],
    ['*', '*'],
  ]
  for (const right of rights) {
    const { stdout } = await plane.kubectl(['auth', 'can-i', ...right, ...as])
    assert.equal(stdout.trim(), 'no', right.join(' '))
  }
  const admin = await plane.kubectl(['auth', 'can-i', 'list', 'secrets', '-n', namespace])
  assert.equal(admin.stdout.trim(), 'yes')
}

async function pipelineOf(plane: ControlPlane): Promise<unknown> {
  const { data } = await plane.get<{ data: Record<string, string> }>('configmap', fullName, '-n', namespace)
  return parse(data['pipeline.yaml'] ?? '')
}

/** Other settings start the nodes anew, one after the other; a roll back brings the former ones. */
export async function upgradesAndGoesBack(plane: ControlPlane): Promise<void> {
  const before = await pipelineOf(plane)
  const uids = async () =>
    (await plane.get<{ items: { metadata: { uid: string } }[] }>('pods', '-n', namespace)).items
  const old = new Set((await uids()).map(({ metadata }) => metadata.uid))
  const values = { ...clusterValues, pipeline: { ...clusterValues.pipeline, name: 'second' } }
  const upgrade = async () => succeeded(await withChart(plane, ['upgrade', release], values))
  assert.equal(await fewestReady(plane, all, upgrade), 2)
  assert.equal(((await pipelineOf(plane)) as { name: string }).name, 'second')
  assert.ok((await uids()).every(({ metadata }) => !old.has(metadata.uid)))

  const rollback = ['rollback', release, '1', '-n', namespace, '--wait', '--timeout', '2m']
  assert.equal(await fewestReady(plane, all, async () => succeeded(await plane.helm(rollback))), 2)
  assert.deepEqual(await pipelineOf(plane), before)
}

/** One node at a time is taken from its machine; the next one waits until it is back. */
export async function keepsNodesInDrains(plane: ControlPlane): Promise<void> {
  const machinesOfAll = zones.map((zone) => `machine-${zone}`)
  succeeded(await plane.kubectl(['cordon', ...machinesOfAll]))
  const evict = (pod: string) => {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod, namespace } }
    const path = `/api/v1/namespaces/${namespace}/pods/${pod}/eviction`
    return plane.kubectl(['create', '--raw', path, '-f', '-'], JSON.stringify(eviction))
  }
  succeeded(await evict(`${fullName}-0`))
  // Nowhere to go: it stays away.
  const second = await evict(`${fullName}-1`)
  assert.match(second.stderr, /violate the pod's disruption budget/)
  succeeded(await plane.kubectl(['uncordon', ...machinesOfAll]))
  await allReady(plane, 3)

  const { nodeName = '' } = (await podsOf(plane, namespace, release))[1]!.spec
  const drain = ['drain', nodeName, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=120s']
  assert.equal(await fewestReady(plane, all, async () => succeeded(await plane.kubectl(drain))), 2)
  const pods = await podsOf(plane, namespace, release)
  assert.ok(pods.every(({ spec }) => spec.nodeName !== nodeName))
  succeeded(await plane.kubectl(['uncordon', nodeName]))
}

export const allReady = (plane: ControlPlane, count: number): Promise<readonly Pod[]> =>
  until(
    `${count} nodes that are ready`,
    async () => {
      const pods = await podsOf(plane, namespace, release)
      return pods.length === count && pods.every(isReady) ? pods : undefined
    },
    120_000,
    250,
  )

/** The disk of a node that is scaled away stays, and is its own again when it is back. */
export async function keepsDisks(plane: ControlPlane): Promise<void> {
  const claim = () => plane.get<Claim>('pvc', `data-${fullName}-2`, '-n', namespace)
  const before = (await claim()).spec.volumeName
  succeeded(await withChart(plane, ['upgrade', release], { ...clusterValues, replicas: 2 }))
  await allReady(plane, 2)
  assert.equal((await claim()).status.phase, 'Bound')
  succeeded(await withChart(plane, ['upgrade', release], clusterValues))
  await allReady(plane, 3)
  assert.equal((await claim()).spec.volumeName, before)
}

/** Three machines with two cards each have room for three nodes with two cards; the fourth waits and says for what. */
export async function takesCards(plane: ControlPlane): Promise<void> {
  const values = { ...clusterValues, replicas: 4, gpu: { enabled: true, count: 2 } }
  const args = ['install', 'cards', chartFolder, '-n', namespace, '-f', '-']
  succeeded(await plane.helm(args, JSON.stringify(values)))
  const waiting = await until(
    'the node without a card',
    async () => {
      const pods = await podsOf(plane, namespace, 'cards')
      const [ready, others] = [pods.filter(isReady), pods.filter((pod) => !isReady(pod))]
      const reasons = others
        .flatMap(({ status }) => status.conditions ?? [])
        .map(({ message }) => message ?? '')
      const short = reasons.find((reason) => reason.includes('gpu'))
      return ready.length === 3 && others.length === 1 ? short : undefined
    },
    60_000,
    250,
  )
  assert.match(waiting, /3 Insufficient nvidia\.com\/gpu/)
  succeeded(await plane.helm(['uninstall', 'cards', '-n', namespace, '--wait']))
}
