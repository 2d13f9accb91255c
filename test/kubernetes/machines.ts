import type { ControlPlane } from './control-plane.js'
import { until } from '../support/until.js'

export type Pod = Readonly<{
  metadata: { name: string; deletionTimestamp?: string }
  spec: { nodeName?: string; volumes: { name: string; persistentVolumeClaim?: { claimName: string } }[] }
  status: { phase: string; conditions?: readonly { type: string; status: string; message?: string }[] }
}>
type List<T> = Readonly<{ items: readonly T[] }>

export const zones = ['north', 'south', 'west']

/** Three machines, each in a zone of its own and with two cards; kwok answers for them. */
export const machines = zones.map((zone) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: `machine-${zone}`,
    annotations: { 'kwok.x-k8s.io/node': 'fake' },
    labels: { 'kubernetes.io/hostname': `machine-${zone}`, 'topology.kubernetes.io/zone': zone },
  },
  status: {
    capacity: { cpu: '32', memory: '128Gi', pods: '110', 'nvidia.com/gpu': '2' },
    allocatable: { cpu: '32', memory: '128Gi', pods: '110', 'nvidia.com/gpu': '2' },
  },
}))

/** Disks that are there before anybody asks for one: nothing makes them, as on a machine of one's own. */
const disks = (count: number) => [
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'disks', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: 'kubernetes.io/no-provisioner',
  },
  ...Array.from({ length: count }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `disk-${index}` },
    spec: {
      capacity: { storage: '10Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: 'disks',
      hostPath: { path: `/disks/${index}` },
    },
  })),
]

/** Machines, disks, and a namespace that lets in what the strictest standard of pods allows. */
export async function furnish(plane: ControlPlane, namespace: string): Promise<void> {
  for (const machine of machines) {
    const made = await plane.kubectl(['create', '-f', '-'], JSON.stringify(machine))
    if (made.code !== 0) throw new Error(made.stderr)
  }
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  await plane.apply([
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
    ...disks(24),
  ])
  await until('the account of the namespace', async () => {
    const { code } = await plane.kubectl(['-n', namespace, 'get', 'serviceaccount', 'default'])
    return code === 0
  })
}

export async function podsOf(
  plane: ControlPlane,
  namespace: string,
  release: string,
): Promise<readonly Pod[]> {
  const selector = `app.kubernetes.io/instance=${release}`
  const { items } = await plane.get<List<Pod>>('pods', '-n', namespace, '-l', selector)
  return items
}

/** Whether Kubernetes counts it as one that serves. */
export const isReady = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined &&
  (status.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True')
