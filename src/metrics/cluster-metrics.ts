import { Counter, Gauge, type Registry } from 'prom-client'

export type ClusterMetrics = ReturnType<typeof createClusterMetrics>

/** Series of a node of a cluster. */
export function createClusterMetrics(registry: Registry) {
  const registers = [registry]
  return {
    member: new Gauge({
      name: 'gantry_cluster_member',
      help: '1 while the node has its place in the cluster, 0 while it joins or the brokers do not answer.',
      registers,
    }),
    cameras: new Gauge({
      name: 'gantry_cluster_cameras',
      help: 'Cameras that the cluster has on all nodes together, as this node knows.',
      registers,
    }),
    slots: new Gauge({
      name: 'gantry_cluster_slots',
      help: 'Slots whose cameras run on this node. Over all nodes they add up to cluster.slots.',
      registers,
    }),
    slotsConfigured: new Gauge({
      name: 'gantry_cluster_slots_configured',
      help: 'cluster.slots of this node: what gantry_cluster_slots of all nodes add up to while each slot is on one.',
      registers,
    }),
    slotsMoved: new Counter({
      name: 'gantry_cluster_slots_moved_total',
      help: 'Slots that came to this node (gained) or went to others (lost).',
      labelNames: ['direction'] as const,
      registers,
    }),
    clockSkew: new Gauge({
      name: 'gantry_cluster_clock_skew_seconds',
      help: 'How far the clock of another node is from that of this one, the farthest, as each was asked in the last half minute.',
      registers,
    }),
    refused: new Counter({
      name: 'gantry_cluster_camera_records_refused_total',
      help: 'Records in the topic of cameras that this node could not follow.',
      registers,
    }),
  }
}
