import { BroadcastChannel, isMainThread } from 'node:worker_threads'
import { nodeWarnings, type NodeWarning } from './node-warnings.js'

/**
 * Imported by every file that starts a process or a thread of ours, before anything but `no-telemetry`: what Node would print as a line
 * of its own among those of the log (`(node:123) DeprecationWarning: ...`) comes to `nodeWarnings`. Threads hand theirs to their process.
 *
 * Who starts Node without warnings (`--no-warnings`, `NODE_NO_WARNINGS=1`) gets none.
 */
const channelName = 'gantry.node-warnings'

function handOver(warning: NodeWarning): void {
  const channel = new BroadcastChannel(channelName)
  channel.postMessage(warning)
  channel.close()
}

function receive(): void {
  const channel = new BroadcastChannel(channelName)
  channel.onmessage = (event) => nodeWarnings.take((event as { data: NodeWarning }).data)
  channel.unref()
}

if (isMainThread) receive()
if (process.listenerCount('warning') > 0) {
  process.removeAllListeners('warning')
  process.on('warning', ({ name, message, stack, ...rest }: Error & { code?: string }) => {
    const warning = { name, code: rest.code, message, stack }
    if (isMainThread) nodeWarnings.take(warning)
    else handOver(warning)
  })
}
