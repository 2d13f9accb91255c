import type { Service } from '../../lifecycle/service.js'
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { DetectionsMessage } from '../../messages/detections-message.js'
import type { PictureHeader } from '../../messages/stream-protocol.js'

/** JPEG of an analysed frame, for clients that asked for `frames`. */
export type Picture = Readonly<{ header: PictureHeader; jpeg: Uint8Array }>

/** The WebSocket side of `gantry.v1`: who is connected, what each wants, and what each missed. */
export interface StreamHub extends Service {
  readonly clients: number
  /** Cameras some client wants pictures of; `*` for all. */
  readonly pictureCameras: ReadonlySet<string>
  /** Called whenever `pictureCameras` changes. */
  onPictureCameras: ((cameras: ReadonlySet<string>) => void) | undefined
  /** Called whenever `clients` changes. */
  onClients: ((clients: number) => void) | undefined
  /**
   * Takes over an accepted socket: sends `hello`, answers its messages, closes it when it misbehaves.
   *
   * @param wire - the connection below it, without TLS or compression.
   */
  attach(socket: WebSocket, wire: Socket): void
  /**
   * Serialises once, sends to all who subscribed; slow clients are skipped and told. Never throws.
   *
   * @param atMs - monotonic time of the message; default now.
   */
  publish(message: DetectionsMessage, picture?: Picture, atMs?: number): void
  /** Closes every client with 1001. Idempotent. */
  stop(): Promise<void>
}
