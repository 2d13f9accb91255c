import type { Socket } from 'node:net'

/**
 * Gives a connection to another process. Nothing more may be read of it here, and Node has no public way to say so: a paused socket reads
 * on until its buffer is full. `readStop` is what Node itself calls then.
 *
 * @param take - whether the other took it; if not, it is read on.
 */
export function handOver(socket: Socket, take: () => boolean): boolean {
  const { _handle: handle } = socket as Socket & {
    _handle?: Readonly<{ readStop(): void; readStart(): void }>
  }
  if (handle === undefined) return false
  handle.readStop()
  if (take()) return true
  handle.readStart()
  return false
}
