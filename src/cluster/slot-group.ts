import { type Admin, AssignerProtocol, type Consumer, type Kafka } from 'kafkajs'
import { reasonOf } from '../delivery/kafka/kafka-errors.js'
import { backoffMs } from '../lifecycle/backoff.js'
import { nowMs } from '../lifecycle/clock.js'
import { atMost, delay, unlessAborted } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'
import { type MemberData } from './member-data.js'
import { memberDataOf, slotAssigner } from './slot-assigner.js'
import { nextClaim, parseClaim, type SlotClaim } from './slot-claim.js'
import { consumerRetry } from './topic-reader.js'

/** Least session timeout that brokers take by default (`group.min.session.timeout.ms`): a node that is silent for so long is put out. */
export const sessionTimeoutMs = 6_000
const heartbeatMs = 1_000
/** Longest that members which hang hold up the others. */
const rebalanceTimeoutMs = 10_000
/** Of a fetch that has nothing to fetch; heartbeats go between two of them. */
const idleMs = 500
const claimRetry = { baseMs: 100, capMs: 2_000 }
const reopenRetry = { baseMs: 500, capMs: 5_000 }
const leaveMs = 3_000
/** What the brokers said of the group is believed for so long. */
const nodesForMs = 500

export type SlotGroupSettings = Readonly<{
  groupId: string
  /** Its partitions are the slots. */
  topic: string
  slots: number
  node: string
}>

export type SlotGroupDeps = Readonly<{
  /** A client in place of the former one. */
  open: () => Promise<Kafka>
  /** Why a client has failed, for people. */
  reasonOf?: (error: unknown) => string
  /** What is told of this node when the group forms, beside what it holds. */
  about: () => Omit<MemberData, 'node' | 'held'>
  /** What each slot asks for, as far as this node knows; asked where it leads the group. */
  loads: () => readonly number[]
  /** Slots are ours from now on, by this claim. */
  gained: (claims: ReadonlyMap<number, number>) => void
  /** Slots are not ours any more: whatever runs for them ends now. */
  lost: (slots: readonly number[]) => void
  /**
   * Slots are another's from now on, who has not claimed them yet: told of those that need not run here any more. Default: none need.
   */
  succeeded?: (
    held: ReadonlyMap<number, number>,
    taken: (slots: readonly number[]) => void,
    signal: AbortSignal,
    /** This node has not heard of the others for so long that they may have had them for a while. */
    wasOut: boolean,
  ) => Promise<void>
  /** The group has formed: who is in it beside this node. */
  met?: (others: readonly MemberData[]) => void
  log: Log
}>

/** A node of the cluster as the group knows it. */
export type GroupNode = Readonly<{ data: MemberData; slots: readonly number[]; isThis: boolean }>

/**
 * This node's place among those that share the slots: a member of one consumer group of Kafka, whose partitions are the slots.
 *
 * A slot is ours once it is claimed: its generation is written with the group's own commit, which brokers take from members of the group as it
 * is now and from nobody else. Slots that stay keep their claim, and what runs for them runs on, while the group forms anew. A node that
 * was put out without noticing, because it was stopped or cut off, learns it with its next heartbeat and gives up all slots that others
 * have claimed since.
 */
export class SlotGroup {
  readonly #held = new Map<number, number>()
  readonly #closing = new AbortController()
  #consumer: Consumer | undefined
  #admin: Admin | undefined
  #memberId: string | undefined
  /** Counts assignments: work for an earlier one is of no use. */
  #assignments = 0
  #heardMs = Number.NEGATIVE_INFINITY
  /** It was silent for so long that others may have been given what it holds. */
  #wasOut = false
  /** Ends the waiting for those who have been given slots that this node holds. */
  #yielding = new AbortController()
  #reason: string | undefined
  #staying: Promise<void> | undefined
  #told: Readonly<{ atMs: number; nodes: Promise<readonly GroupNode[]> }> | undefined

  constructor(
    readonly settings: SlotGroupSettings,
    readonly deps: SlotGroupDeps,
  ) {}

  /** Generation of the claim by slot. */
  get held(): ReadonlyMap<number, number> {
    return this.#held
  }

  /** How long the group has not answered; a node that hears nothing goes on with what it holds. */
  get silentMs(): number {
    return nowMs() - this.#heardMs
  }

  /** Why this node has no place in the group; undefined while it has one, or has not joined yet. */
  get reason(): string | undefined {
    return this.#reason
  }

  /** It has been given its share of the slots, if only once. */
  get hasJoined(): boolean {
    return this.#assignments > 0
  }

  /** Joins, and stays a member until {@link leave}: a connection that failed is opened again. */
  start(): void {
    this.#staying = this.#stay()
  }

  async #stay(): Promise<void> {
    const { signal } = this.#closing
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      const joinedMs = nowMs()
      const reason = await this.#join().catch((error: unknown) => this.#reasonOf(error))
      if (signal.aborted) return
      this.#reason = reason
      this.deps.log.warn({ reason }, 'out of the cluster group, joining again')
      if (nowMs() - joinedMs > 60_000) attempt = 0
      await delay(backoffMs(attempt, reopenRetry), signal)
    }
  }

  #reasonOf(error: unknown): string {
    return this.deps.reasonOf?.(error) ?? reasonOf(error)
  }

  /** Resolves with the reason when the client gives up; rejects when this node leaves. */
  async #join(): Promise<string> {
    const { topic, groupId } = this.settings
    const kafka = await this.deps.open()
    const admin = kafka.admin()
    const consumer = kafka.consumer({
      groupId,
      partitionAssigners: [slotAssigner(topic, () => this.data(), this.deps.loads)],
      sessionTimeout: sessionTimeoutMs,
      heartbeatInterval: heartbeatMs,
      rebalanceTimeout: rebalanceTimeoutMs,
      maxWaitTimeInMs: idleMs,
      allowAutoTopicCreation: false,
      retry: consumerRetry,
    })
    const { CRASH, GROUP_JOIN, HEARTBEAT } = consumer.events
    const crashed = new Promise<string>((resolve) => {
      consumer.on(CRASH, ({ payload }) => resolve(this.#reasonOf(payload.error)))
    })
    consumer.on(HEARTBEAT, () => this.#heard())
    consumer.on(GROUP_JOIN, ({ payload }) => {
      this.#heard()
      // Nothing is read here: records are read whole by each node.
      consumer.pause([{ topic }])
      this.#memberId = payload.memberId
      this.#assigned(payload.memberAssignment[topic] ?? [])
    })
    try {
      await unlessAborted(Promise.all([admin.connect(), consumer.connect()]), this.#closing.signal)
      this.#consumer = consumer
      this.#admin = admin
      await consumer.subscribe({ topic, fromBeginning: true })
      await consumer.run({ autoCommit: false, eachMessage: () => Promise.resolve() })
      return await unlessAborted(crashed, this.#closing.signal)
    } finally {
      this.#assignments += 1
      const isLeaving = this.#closing.signal.aborted
      await atMost(
        leaveMs,
        Promise.allSettled([consumer.disconnect(), ...(isLeaving ? [] : [admin.disconnect()])]),
      )
    }
  }

  /** What is told of this node. */
  data(): MemberData {
    return { ...this.deps.about(), node: this.settings.node, held: this.#held }
  }

  #heard(): void {
    if (this.silentMs > sessionTimeoutMs) this.#wasOut = true
    this.#heardMs = nowMs()
    this.#reason = undefined
  }

  #assigned(slots: readonly number[]): void {
    this.#assignments += 1
    this.#told = undefined
    const assigned = new Set(slots)
    this.#yield(new Map([...this.#held].filter(([slot]) => !assigned.has(slot))))
    void this.#claim(slots, this.#assignments)
    void this.#meet(this.#assignments)
  }

  /** Looks who else is in the group as it is now. */
  async #meet(assignment: number): Promise<void> {
    const isCurrent = () => assignment === this.#assignments && !this.#closing.signal.aborted
    for (let attempt = 0; isCurrent(); attempt += 1) {
      const nodes = await this.#describe().catch(() => [])
      if (isCurrent() && nodes.some(({ isThis }) => isThis)) {
        this.deps.met?.(nodes.filter(({ isThis }) => !isThis).map(({ data }) => data))
        return
      }
      await delay(backoffMs(attempt, claimRetry), this.#closing.signal)
    }
  }

  /** To those who have them now, or will. */
  #yield(held: ReadonlyMap<number, number>): void {
    this.#yielding.abort()
    this.#yielding = new AbortController()
    const wasOut = this.#wasOut
    this.#wasOut = false
    const { succeeded } = this.deps
    if (succeeded === undefined) return this.#giveUp([...held.keys()])
    if (held.size === 0) return
    const taken = (slots: readonly number[]) =>
      this.#giveUp(slots.filter((slot) => this.#held.get(slot) === held.get(slot)))
    void succeeded(held, taken, AbortSignal.any([this.#yielding.signal, this.#closing.signal]), wasOut)
  }

  #giveUp(slots: readonly number[]): void {
    if (slots.length === 0) return
    for (const slot of slots) this.#held.delete(slot)
    this.deps.lost(slots)
  }

  /** Until it has succeeded or the slots have been assigned anew. */
  async #claim(slots: readonly number[], assignment: number): Promise<void> {
    const isCurrent = () => assignment === this.#assignments && !this.#closing.signal.aborted
    for (let attempt = 0; isCurrent(); attempt += 1) {
      try {
        const gained = await this.#claimOnce(slots, isCurrent)
        if (gained === undefined) return
        for (const [slot, generation] of gained) this.#held.set(slot, generation)
        this.deps.log.info({ slots: slots.length, gained: gained.size }, 'slots of cameras assigned')
        if (gained.size > 0) this.deps.gained(gained)
        return
      } catch (error) {
        this.deps.log.debug({ reason: reasonOf(error) }, 'slots not claimed yet')
        await delay(backoffMs(attempt, claimRetry), this.#closing.signal)
      }
    }
  }

  /** @returns undefined where the assignment has changed meanwhile. */
  async #claimOnce(
    slots: readonly number[],
    isCurrent: () => boolean,
  ): Promise<ReadonlyMap<number, number> | undefined> {
    const { topic, node } = this.settings
    const claims = await this.claims()
    if (!isCurrent()) return undefined
    // Ours by a claim that somebody has passed since: it begins anew.
    this.#giveUp(slots.filter((slot) => this.#held.has(slot) && !this.#isOurs(slot, claims.get(slot))))
    const next = slots
      .filter((slot) => !this.#held.has(slot))
      .map((slot) => ({ slot, claim: nextClaim(node, claims.get(slot)) }))
    if (next.length > 0)
      await this.#consumer?.commitOffsets(
        next.map(({ slot, claim }) => ({
          topic,
          partition: slot,
          offset: '0',
          metadata: JSON.stringify(claim),
        })),
      )
    return isCurrent() ? new Map(next.map(({ slot, claim }) => [slot, claim.generation])) : undefined
  }

  #isOurs(slot: number, claim: SlotClaim | undefined): boolean {
    return claim?.node === this.settings.node && claim.generation === this.#held.get(slot)
  }

  /** Who has claimed which slot last. */
  async claims(): Promise<ReadonlyMap<number, SlotClaim>> {
    const { groupId, topic } = this.settings
    const [offsets] = (await this.#admin?.fetchOffsets({ groupId, topics: [topic] })) ?? []
    const claims = (offsets?.partitions ?? []).map(
      ({ partition, metadata }) => [partition, parseClaim(metadata)] as const,
    )
    return new Map(claims.filter((entry): entry is [number, SlotClaim] => entry[1] !== undefined))
  }

  /** The nodes of the group and their slots; none while the group forms, or the brokers do not answer. */
  nodes(): Promise<readonly GroupNode[]> {
    if (this.#told === undefined || nowMs() - this.#told.atMs > nodesForMs)
      this.#told = { atMs: nowMs(), nodes: this.#describe().catch(() => []) }
    return this.#told.nodes
  }

  async #describe(): Promise<readonly GroupNode[]> {
    const { topic } = this.settings
    const { members = [] } = (await this.#consumer?.describeGroup()) ?? {}
    return members.flatMap(({ memberId, memberMetadata, memberAssignment }) => {
      if (memberMetadata.length === 0 || memberAssignment.length === 0) return []
      const data = memberDataOf(memberMetadata)
      const slots = AssignerProtocol.MemberAssignment.decode(memberAssignment)?.assignment[topic]
      return data === undefined ? [] : [{ data, slots: slots ?? [], isThis: memberId === this.#memberId }]
    })
  }

  /**
   * Leaves the group, so that the others take what this node holds. It is still {@link held}, for whoever goes on until the others have
   * claimed it.
   */
  async leave(): Promise<void> {
    this.#closing.abort()
    await this.#staying
  }

  /** Ends the connection that {@link leave} left for {@link claims}. */
  async stop(): Promise<void> {
    await this.leave()
    await atMost(
      leaveMs,
      Promise.resolve(this.#admin?.disconnect()).catch(() => undefined),
    )
  }
}
