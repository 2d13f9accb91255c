import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'

/** What is left of an upgrade request that was found good. */
export type UpgradeRequest = Readonly<{ method: string; url: string; headers: IncomingHttpHeaders }>

/** Where clients of the stream are served. */
export interface StreamUpstream {
  /** Takes over a connection whose upgrade request was found good; `head` is what was read behind it. @returns whether it took it. */
  adopt(request: UpgradeRequest, socket: Socket, head: Buffer): boolean
  /** Closes every client with 1001. Idempotent, never rejects. */
  stop(): Promise<void>
}
