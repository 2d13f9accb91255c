import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'

/** What is left of an upgrade request that was found good. */
export type UpgradeRequest = Readonly<{ method: string; url: string; headers: IncomingHttpHeaders }>

/** Where clients of the stream are served. */
export interface StreamUpstream {
  /**
   * Takes over a connection whose upgrade request was found good.
   *
   * @param head - what was read behind the request.
   * @returns whether it took it; a promise where it has to start for that.
   */
  adopt(request: UpgradeRequest, socket: Socket, head: Buffer): boolean | Promise<boolean>
  /** Closes every client with 1001. Idempotent, never rejects. */
  stop(): Promise<void>
}
