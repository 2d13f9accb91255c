import { type Kafka, logLevel } from 'kafkajs'
import type { CameraConfig } from '../config/camera.js'
import type { ClusterConfig } from '../config/cluster.js'
import type { KafkaConnection } from '../config/outputs.js'
import { loginSecrets, KafkaClients } from '../delivery/kafka/kafka-client.js'
import { reasonOf } from '../delivery/kafka/kafka-errors.js'
import { kafkaLog } from '../delivery/kafka/kafka-log.js'
import { SocketGuard } from '../delivery/kafka/socket-guard.js'
import { GantryError } from '../errors.js'
import type { KeptCameras } from '../cameras/camera-store.js'
import { backoffMs } from '../lifecycle/backoff.js'
import { atMost, delay, unlessAborted } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'
import type { ClusterMetrics } from '../metrics/cluster-metrics.js'
import type { OtherNodes } from './ask-nodes.js'
import { CameraRegistry, RegistryUnavailableError } from './camera-registry.js'
import { slotOf } from './camera-slot.js'
import { clusterAdvice } from './cluster-advice.js'
import { checkTopics, isWrongTopic } from './cluster-topics.js'
import { KnownNodes, type NodeView } from './known-nodes.js'
import type { MemberData } from './member-data.js'
import { NodeNote } from './node-note.js'
import { differences, keptOutBy } from './node-differences.js'
import type { NodeCapacity } from './node-weights.js'
import { type GroupNode, sessionTimeoutMs, SlotGroup } from './slot-group.js'
import { succeeded, type SuccessorsDeps } from './successors.js'

/** Answers of brokers; a join may take as long as members are waited for. */
const requestTimeoutMs = 10_000
const connectTimeoutMs = 2_000

/** Longest at the end for the others to take this node's cameras, and for these to show their first pictures. */
const takenWithinMs = 8_000
/** Longest at the end to hear from the brokers who else there is, and for a question that goes to all nodes. */
const whoElseMs = { ending: 2_000, asking: 1_000 }
const brokersRetry = { baseMs: 500, capMs: 5_000 }

/** This node's place in its cluster. */
export type ClusterState = Readonly<{
  id: string
  node: string
  /** `joining` until it knows the cameras and its share of them; `cut_off`: the brokers do not answer, it goes on with what it has. */
  state: 'joining' | 'member' | 'cut_off'
  reason: string
  slots: number
  /** Slots whose cameras run here. */
  held: number
  /** Cameras of all nodes. */
  cameras: number
  /** Itself, those that were in the group when it formed last, and those that have left since this one started. */
  nodes: readonly NodeView[]
}>

/** No node has a camera now, or the one that was asked does not have it. */
export class NodeNotReadyError extends GantryError {
  readonly code = 'GANTRY_CLUSTER_MOVED'
  readonly hint = 'Cameras go over to other nodes: try again in a few seconds.'
  override readonly retryable = true
  constructor(cameraId: string) {
    super(`camera "${cameraId}" is with no node that answers`)
    this.name = 'NodeNotReadyError'
  }
}

export type ClusterSettings = Readonly<{
  config: ClusterConfig
  kafka: Readonly<{ connection: KafkaConnection; setting: string }>
  /** Where the other nodes reach this one. */
  url: string
  version: string
  /** What runs for the cameras of this node, in words that tell other files, too. */
  models: string
}>

/** What a client of the brokers is for. */
type KafkaUse = 'topics' | 'cameras' | 'changes' | 'group' | 'note'

export type ClusterDeps = Readonly<{
  capacity: () => NodeCapacity
  metrics: ClusterMetrics
  /** The camera runs here from now on, with these settings. */
  runs: (config: CameraConfig) => void
  /** It does not run here any more. @param isRemoved - nor anywhere else: told of cameras that never ran here, too. */
  leaves: (id: string, isRemoved: boolean) => void
  /** The group has formed anew. */
  met?: () => void
  /** In what the clocks of other nodes differ from that of this one. */
  clocks?: () => readonly string[]
  /** Cameras of which pictures come here, and at another node; undefined where it does not say. Never rejects. */
  liveHere: () => readonly string[]
  liveOn: (url: string) => Promise<ReadonlySet<string> | undefined>
  log: Log
}>

/** This node's part in a cluster: which cameras there are, and which of them are its own. */
export class Cluster {
  readonly registry: CameraRegistry
  readonly group: SlotGroup
  /** What this node leaves for its next start. */
  readonly note: NodeNote
  readonly #clients: KafkaClients
  /** Of the client for each use. */
  readonly #guards = new Map<KafkaUse, SocketGuard>()
  readonly #nodes = new KnownNodes()
  /** Removals that were in the topic before this node came were followed by others, or by its last run. */
  #knowsAll = false
  /** What the start waits for. */
  #startingReason: string | undefined

  constructor(
    readonly settings: ClusterSettings,
    readonly deps: ClusterDeps,
  ) {
    const { config, kafka } = settings
    const { id, node, slots, topics } = config
    const { log } = deps
    this.#clients = new KafkaClients(kafka.connection, log, kafka.setting)
    const groupId = `gantry.${id}`
    this.registry = new CameraRegistry(
      { topics, groupId, slots, node },
      {
        open: (use) => this.#open(use),
        reasonOf: (error, use) => this.#reasonOf(error, use),
        owns: (slot) => this.group.held.has(slot),
        changed: (camera, to) => this.#changed(camera, to),
        refused: () => deps.metrics.refused.inc(),
        log,
      },
    )
    this.note = new NodeNote({
      ...{ groupId: `${groupId}.node.${node}`, topic: topics.cameras },
      open: () => this.#open('note'),
    })
    this.group = new SlotGroup(
      { groupId, topic: topics.cameras, slots, node },
      {
        open: () => this.#open('group'),
        reasonOf: (error) => this.#reasonOf(error, 'group'),
        about: () => this.#about(),
        loads: () => this.#loads(),
        gained: (claims) => this.#gained(claims),
        lost: (lost) => this.#lost(lost),
        succeeded: (held, taken, signal, wasOut) =>
          succeeded(held, this.#successors(), taken, signal, wasOut),
        met: (others) => this.#met(others),
        log,
      },
    )
  }

  /**
   * Reads all cameras, then joins the group; waits for the brokers meanwhile.
   *
   * @param cameras - of this node's file.
   * @throws SlotsDifferError, TopicForgetsError; the reason of the signal
   */
  async start(cameras: readonly CameraConfig[], signal: AbortSignal): Promise<void> {
    await this.#topicsThere(signal)
    this.registry.start()
    await unlessAborted(this.registry.whole, signal)
    this.#knowsAll = true
    await this.#bring(cameras, signal)
    this.group.start()
  }

  async #topicsThere(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await checkTopics(await this.#open('topics'), this.settings.config, this.deps.log)
        this.#startingReason = undefined
        return
      } catch (error) {
        if (isWrongTopic(error)) throw error
        await this.#waits(error, 'topics', attempt, signal)
      }
    }
  }

  /** @throws the reason of the signal */
  async #waits(error: unknown, use: KafkaUse, attempt: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const reason = this.#reasonOf(error, use)
    if (reason !== this.#startingReason)
      this.deps.log.warn(
        { reason, setting: this.settings.kafka.setting },
        'waits for the brokers of the cluster',
      )
    this.#startingReason = reason
    await delay(backoffMs(attempt, brokersRetry), signal)
    signal.throwIfAborted()
  }

  /** Cameras are kept in the topic of the cluster. */
  get kept(): KeptCameras {
    return {
      load: () => Promise.resolve([]),
      save: (_, { id, config }) =>
        config === undefined ? this.registry.remove(id) : this.registry.set(config),
    }
  }

  /** Cameras of this node's file that the cluster does not have yet become cameras of the cluster. */
  async #bring(cameras: readonly CameraConfig[], signal: AbortSignal): Promise<void> {
    const unknown = cameras.filter(({ id }) => !this.registry.has(id))
    let attempt = 0
    for (const camera of unknown) {
      // Another node may have brought it meanwhile.
      while (!this.registry.has(camera.id)) {
        try {
          await this.registry.set(camera)
        } catch (error) {
          if (!(error instanceof RegistryUnavailableError)) throw error
          await this.#waits(error, 'changes', attempt++, signal)
        }
      }
    }
    this.#startingReason = undefined
    if (unknown.length > 0)
      this.deps.log.info(
        { cameras: unknown.map(({ id }) => id) },
        'cameras of the file are in the cluster now',
      )
  }

  get health(): ClusterState {
    const { url, version, config } = this.settings
    const { id, node, slots } = config
    const nodes = this.#nodes.views({ node, url, version })
    const counts = { slots, held: this.group.held.size, cameras: this.registry.cameras.size }
    return { id, node, ...this.#standing(), ...counts, nodes }
  }

  /** Before the page of metrics is written. */
  measure(): void {
    const { member, cameras, slots, slotsConfigured } = this.deps.metrics
    slotsConfigured.set(this.settings.config.slots)
    member.set(this.health.state === 'member' ? 1 : 0)
    cameras.set(this.registry.cameras.size)
    slots.set(this.group.held.size)
  }

  #standing(): Pick<ClusterState, 'state' | 'reason'> {
    const { group, registry } = this
    const reason = group.reason ?? registry.reason ?? this.#startingReason
    if (!group.hasJoined)
      return { state: 'joining', reason: reason ?? 'it waits for its share of the cameras' }
    const own = group.data()
    const keptOut = keptOutBy(own, this.#nodes.others)
    if (keptOut !== undefined) return { state: 'joining', reason: keptOut }
    if (group.silentMs < sessionTimeoutMs && reason === undefined)
      return { state: 'member', reason: this.#differences(own).join('; ') }
    return { state: 'cut_off', reason: reason ?? 'the brokers do not answer' }
  }

  #differences(own: MemberData): readonly string[] {
    return [...differences(own, this.#nodes.others), ...(this.deps.clocks?.() ?? [])]
  }

  /** Generation of this node's claim of a camera; undefined for one that is not its own. */
  generationOf(cameraId: string): number | undefined {
    return this.group.held.get(this.slotOf(cameraId))
  }

  /** What a result of a camera bears; undefined for one that is not this node's. */
  ownerMark(cameraId: string): Readonly<{ node: string; generation: number }> | undefined {
    const generation = this.generationOf(cameraId)
    return generation === undefined ? undefined : { node: this.settings.config.node, generation }
  }

  /** The node that has a camera, as the group says; undefined while it has none. */
  async ownerOf(cameraId: string): Promise<GroupNode | undefined> {
    const slot = this.slotOf(cameraId)
    const nodes = await this.group.nodes()
    return nodes.find(({ slots }) => slots.includes(slot))
  }

  slotOf(cameraId: string): number {
    return slotOf(cameraId, this.settings.config.slots)
  }

  #about() {
    const { url, version, models, config } = this.settings
    const { slots, topics } = config
    const layout = `${slots} slots of ${topics.cameras}, errors in ${topics.cameraErrors}`
    return { url, version, models, capacity: this.deps.capacity(), layout }
  }

  /** Those that the brokers name now, or named last where they do not answer. */
  async others(): Promise<OtherNodes> {
    const told = (await atMost(whoElseMs.asking, this.group.nodes())) ?? []
    const isTold = told.some(({ isThis }) => isThis)
    const nodes = isTold ? told.flatMap(({ isThis, data }) => (isThis ? [] : [data])) : this.#nodes.others
    const { gone, hasMet } = this.#nodes
    const reason = isTold || hasMet ? undefined : 'the brokers do not say which nodes there are'
    return { nodes, gone, reason }
  }

  #met(others: readonly MemberData[]): void {
    this.#nodes.met(others)
    this.deps.met?.()
    const own = this.group.data()
    const keptOut = keptOutBy(own, others)
    if (keptOut !== undefined) this.deps.log.error({ reason: keptOut }, 'kept out of the cluster')
    else
      for (const difference of differences(own, others))
        this.deps.log.warn({ difference }, 'nodes of the cluster differ')
  }

  /** Pictures a second that the cameras of each slot ask for. */
  #loads(): number[] {
    const loads = Array.from({ length: this.settings.config.slots }, () => 0)
    for (const [id, { sampleFps, enabled }] of this.registry.cameras) {
      const slot = this.slotOf(id)
      if (enabled) loads[slot] = (loads[slot] ?? 0) + sampleFps
    }
    return loads
  }

  #changed(id: string, config: CameraConfig | undefined): void {
    if (config === undefined) {
      if (this.#knowsAll) this.deps.leaves(id, true)
    } else if (this.generationOf(id) !== undefined) this.deps.runs(config)
  }

  #gained(claims: ReadonlyMap<number, number>): void {
    this.deps.metrics.slotsMoved.inc({ direction: 'gained' }, claims.size)
    for (const [id, config] of this.registry.cameras) if (claims.has(this.slotOf(id))) this.deps.runs(config)
    this.registry.gained(claims)
  }

  #lost(slots: readonly number[]): void {
    this.deps.metrics.slotsMoved.inc({ direction: 'lost' }, slots.length)
    const lost = new Set(slots)
    for (const id of this.registry.cameras.keys()) if (lost.has(this.slotOf(id))) this.deps.leaves(id, false)
  }

  /** A new client, in place of the one there was: it reads files of certificates anew. */
  #open(use: KafkaUse): Promise<Kafka> {
    this.#guards.get(use)?.close()
    const guard = new SocketGuard()
    this.#guards.set(use, guard)
    return this.#clients.create(guard, {
      connectionTimeout: connectTimeoutMs,
      requestTimeout: requestTimeoutMs,
      logLevel: logLevel.WARN,
      logCreator: kafkaLog(this.deps.log, loginSecrets(this.settings.kafka.connection.sasl)),
    })
  }

  #reasonOf(error: unknown, use: KafkaUse): string {
    const { connection, setting } = this.settings.kafka
    const advice = clusterAdvice(error, this.#guards.get(use)?.failure, connection, setting)
    if (advice !== undefined) return advice
    return error instanceof GantryError ? `${error.message}; ${error.hint}` : reasonOf(error)
  }

  #bySlot(cameras: readonly string[]): ReadonlyMap<number, readonly string[]> {
    const bySlot = new Map<number, string[]>()
    for (const id of cameras) {
      const slot = this.slotOf(id)
      bySlot.set(slot, [...(bySlot.get(slot) ?? []), id])
    }
    return bySlot
  }

  #successors(): SuccessorsDeps {
    return {
      claims: () => this.group.claims(),
      liveHere: () => this.#bySlot(this.deps.liveHere()),
      liveOn: (node) => {
        const url = this.#nodes.urlOf(node)
        return url === undefined ? Promise.resolve(undefined) : this.deps.liveOn(url)
      },
    }
  }

  /** The others take this node's cameras, which it goes on with: resolves once they have them, or after so long, or at once where there are no others. */
  async handOver(withinMs: number): Promise<void> {
    // Where the brokers are away nobody can take them.
    const nodes = (await atMost(Math.min(withinMs, whoElseMs.ending), this.group.nodes())) ?? []
    this.#nodes.seen(nodes.map(({ data }) => data))
    const used = new Set([...this.registry.cameras.keys()].map((id) => this.slotOf(id)))
    const held = new Map([...this.group.held].filter(([slot]) => used.has(slot)))
    await this.group.leave()
    if (held.size === 0 || nodes.every(({ isThis }) => isThis)) return
    const ended = new AbortController()
    const all = succeeded(held, this.#successors(), () => undefined, ended.signal).then(() => true)
    const isTaken = await atMost(Math.min(withinMs, takenWithinMs), all)
    ended.abort()
    if (!isTaken) this.deps.log.warn('the other nodes have not taken the cameras of this one in time')
  }

  async stop(): Promise<void> {
    await Promise.all([this.group.stop(), this.registry.stop()])
    for (const guard of this.#guards.values()) guard.close()
  }
}
