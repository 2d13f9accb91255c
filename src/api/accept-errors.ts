import type { Server } from 'node:net'
import type { Log } from '../lifecycle/log.js'
import { systemLimit } from '../lifecycle/system-limit.js'

const tellEveryMs = 60_000

/** Lets a server that listens live through connections that it cannot take, and tells of them once a minute. */
export function surviveAcceptErrors(server: Server, log: Log): void {
  let quietUntilMs = 0
  server.on('error', (error) => {
    // That it cannot listen is told by whoever wants it to.
    if (!server.listening) return
    if (performance.now() < quietUntilMs) return
    quietUntilMs = performance.now() + tellEveryMs
    const limit = systemLimit(error)
    log.error({ err: error, ...limit }, 'a connection could not be taken')
  })
}
