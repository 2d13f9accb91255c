import type { Service } from '../../lifecycle/service.js'
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { DetectionsText } from '../../messages/detections-json.js'

/** What the hub asks of a result. */
export type PublishedText = Pick<DetectionsText, 'cameraId' | 'json'> &
  Readonly<{
    /** Place among all that was published; it grows, and not each has a message. Default: right behind the one before. */
    position?: number
  }>

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
   * Sends to all who subscribed; slow clients are skipped and told. Never throws.
   *
   * @param result - its text does not change any more.
   * @param picture - of the same frame, a picture message, for clients that asked for `frames`.
   * @param atMs - monotonic time of the message; default now.
   */
  publish(result: PublishedText, picture?: Uint8Array, atMs?: number): void
  /** Closes every client with 1001. Idempotent. */
  stop(): Promise<void>
}
