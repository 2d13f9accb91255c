import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

/** Longest that a client may take to read what is left for it once the far side is done. */
const leaveAtMostMs = 30_000

/**
 * Passes the bytes of two connections to each other until both are over. An end goes over, so that who is done with asking still hears the
 * answer; a side that breaks off breaks the other.
 *
 * @param near - of a client. @param far - of a process of ours.
 */
export function joinSockets(near: TLSSocket, far: Socket): void {
  near.on('error', () => far.destroy())
  far.on('error', () => near.destroy())
  near.on('close', () => far.destroy())
  far.on('close', () => {
    // Without an end of its own it was cut, which the client must see: an answer may have no length.
    if (!far.readableEnded) return void near.destroy()
    near.setTimeout(leaveAtMostMs, () => near.destroy())
    near.destroySoon()
  })
  near.pipe(far)
  far.pipe(near)
}
