import type { TlsMaterial } from '../../config/tls-files.js'
import type { ErrorRecord } from '../../errors.js'
import type { LogSettings } from '../../lifecycle/log.js'

/** A port, and where what comes there goes. */
export type DoorPort = Readonly<{
  setting: 'httpPort' | 'metricsPort'
  /** 0 takes any that is free. */
  port: number
  /** Unix socket of control. Each connection begins with a header of who it is from. */
  socketPath: string
  maxConnections: number
}>

/** What the door needs to know once, at its start. */
export type DoorSetup = Readonly<{
  host: string
  ports: readonly DoorPort[]
  /** With a CA, clients have to show a certificate of it. */
  material: TlsMaterial
  log: LogSettings
}>

/** Why a connection was not let in. */
export const doorRefusals = ['plain', 'timeout', 'no_certificate', 'untrusted', 'handshake', 'full'] as const
export type DoorRefusal = (typeof doorRefusals)[number]

type Message<Type extends string, Body = unknown> = Readonly<{ type: Type } & Body>

/** Control -> door. */
export type ToDoor =
  | Message<'setup', { setup: DoorSetup }>
  /** For connections that come from now on. */
  | Message<'material', { material: TlsMaterial }>
  | Message<'ask', { requestId: number; question: Message<'beat'> }>
  | Message<'stop', { drainMs: number }>

/** State of the process, once a second; its absence tells a hung one. */
export type DoorBeat = Readonly<{
  rssBytes: number
  cpuSeconds: number
  loopP99Ms: number
  connections: number
  /** Since the last beat. */
  accepted: number
  refused: Readonly<Partial<Record<DoorRefusal, number>>>
}>

/** The ports taken, in the order of the setup. */
export type DoorPorts = readonly number[]

/** Door -> control. */
export type FromDoor =
  | Message<'online'>
  | Message<'ready', { ports: DoorPorts }>
  | Message<'failed', { error: ErrorRecord }>
  | Message<'beat', { beat: DoorBeat }>
  | Message<'answer', { requestId: number; value: unknown }>
  | Message<'refused', { requestId: number; error: ErrorRecord }>
  | Message<'stopped'>
