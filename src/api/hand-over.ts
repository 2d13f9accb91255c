import type { Socket } from 'node:net'

/**
 * Gives a connection to another process. Nothing more may be read of it here, and Node has no public way to say so: a paused socket reads
 * on until its buffer is full. `readStop` is what Node itself calls then.
 *
 * @param take - whether the other took it; if not, it is read on.
 */
export function handOver(socket: Socket, take: () => boolean): boolean
/** @param take - a promise where the other is not there yet: nothing is read until it has decided. */
export function handOver(socket: Socket, take: () => boolean | Promise<boolean>): boolean | Promise<boolean>
export function handOver(socket: Socket, take: () => boolean | Promise<boolean>): boolean | Promise<boolean> {
  const { _handle: handle } = socket as Socket & {
    _handle?: Readonly<{ readStop(): void; readStart(): void }>
  }
  if (!handle) return false
  const decided = (taken: boolean): boolean => {
    if (!taken) handle.readStart()
    return taken
  }
  handle.readStop()
  const taken = take()
  return typeof taken === 'boolean' ? decided(taken) : taken.then(decided)
}
