import type { PeerNode } from '../../cluster/peer-streams.js'
import type { ClientTlsFiles } from '../../config/client-tls.js'
import type { KafkaConfig } from '../../config/outputs.js'
import type { ErrorRecord } from '../../errors.js'
import type { Base64 } from '../../lifecycle/base64.js'
import type { LogSettings } from '../../lifecycle/log.js'
import type { StreamReading } from '../../delivery/websocket/stream-figures.js'
import type { HubSettings } from '../../delivery/websocket/websocket-hub.js'
import type { Peer } from '../../api/peer.js'
import type { UpgradeRequest } from '../../api/stream-upstream.js'

/** Of a node of a cluster, so that its viewers see what the others see, too. */
export type NodeStreamSetup = Readonly<{
  /** The token of all nodes, and whom to trust of them. */
  token: string | undefined
  tls: ClientTlsFiles | undefined
  /** Where all nodes deliver their results; undefined: nowhere that can be read. */
  past: Readonly<{ kafka: KafkaConfig; groupId: string }> | undefined
}>

/** What the stream process needs to know once, at its start. */
export type StreamSetup = Readonly<{
  hub: HubSettings
  maxClients: number
  /** File of what was published, where results are stored. */
  storePath: string | undefined
  /** Absent: this service has all cameras. */
  node?: NodeStreamSetup
  log: LogSettings
}>

type Message<Type extends string, Body = unknown> = Readonly<{ type: Type } & Body>

/** A question with an answer: {@link FromStream} `answer` carries the same `requestId`. `beat` asks for one before its time. */
export type StreamQuestion = Message<'beat'>

/** Control -> stream process, beside results, which are bytes (`published-frame.ts`) and go another way. */
export type ToStream =
  | Message<'setup', { setup: StreamSetup }>
  /** What is published from now on lies behind this position; before the first client. */
  | Message<'begin', { newest: number }>
  /** The other nodes, now and whenever they change. */
  | Message<'nodes', { nodes: readonly PeerNode[] }>
  /** Comes with the socket of a client, who came behind so many results; `head` is what was read behind its request. */
  | Message<'client', { request: UpgradeRequest; head: Base64; behind: number; peer?: Peer }>
  | Message<'ask', { requestId: number; question: StreamQuestion }>
  | Message<'stop', { drainMs: number }>

/** State of the process, once a second; its absence tells a hung one. */
export type StreamBeat = Readonly<{
  rssBytes: number
  cpuSeconds: number
  loopP99Ms: number
  clients: number
  /** Since the last beat. */
  reading: StreamReading
}>

/** Stream process -> control. */
export type FromStream =
  | Message<'online'>
  | Message<'ready'>
  | Message<'failed', { error: ErrorRecord }>
  | Message<'beat', { beat: StreamBeat }>
  | Message<'answer', { requestId: number; value: unknown }>
  | Message<'refused', { requestId: number; error: ErrorRecord }>
  | Message<'clients', { clients: number }>
  /** Cameras some client wants pictures of; `*` for all. */
  | Message<'pictures', { cameras: readonly string[] }>
  | Message<'stopped'>
