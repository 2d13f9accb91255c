import { Socket } from 'node:net'
import { channelDescriptor, FrameChannel, type ChannelListener } from './frame-channel.js'

/**
 * The channel of a process to its parent, with which it ends: when Node's channel closes, the process kills itself at once, because a
 * native run in a worker cannot be interrupted in an orderly way.
 */
export function parentChannel(listener: Omit<ChannelListener, 'broken'>): FrameChannel {
  const end = (): void => void process.kill(process.pid, 'SIGKILL')
  process.on('disconnect', end)
  // It goes on speaking when the parent says no more.
  const socket = new Socket({ fd: channelDescriptor, readable: true, writable: true, allowHalfOpen: true })
  return new FrameChannel(socket, { ...listener, broken: end })
}

/** The last of a process: what it has said is heard, and it is gone. */
export async function leaveParent(channel: FrameChannel): Promise<void> {
  await channel.end()
  process.disconnect()
}
