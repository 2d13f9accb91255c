import type { GantryClientError } from './client-error.js'

/** A connection that is open or becomes so. */
export interface StreamSocket {
  send(text: string): void
  /** Ends it at once, without waiting for a far side that may be long gone. Nothing is told of it any more. */
  close(): void
}

export type Closed = Readonly<{
  /** Of WebSocket (RFC 6455); 1006 where there was no word. */
  code: number
  reason: string
  /** Why it was never open, where that is known. */
  error?: GantryClientError | undefined
}>

/** Opens a WebSocket of `gantry.v1`. `closed` comes once, and nothing after it. */
export type OpenSocket = (
  to: Readonly<{ base: string; token: string | undefined }>,
  on: Readonly<{ data(data: string | ArrayBuffer): void; closed(how: Closed): void }>,
) => StreamSocket
