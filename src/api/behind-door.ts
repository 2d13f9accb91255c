import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Log } from '../lifecycle/log.js'
import { setPeer } from './peer.js'
import { maxProxyHeaderBytes, ProxyHeaderError, readProxyHeader } from './proxy-header.js'

/**
 * Has each connection of a server begin with who it is from: they come from a process of ours that ended their TLS. Whatever else stands
 * before the connections of the server sees them as if they came directly.
 *
 * To be called before the server listens, and after everything else that stands before its connections.
 *
 * @param atMostMs - longest for the header to come.
 */
export function expectPeers(server: Server, atMostMs: number, log: Log): void {
  const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    let head: Buffer = Buffer.alloc(0)
    const timer = setTimeout(() => socket.destroy(), atMostMs)
    const ignore = (): void => undefined
    const done = (): void => {
      clearTimeout(timer)
      socket.off('data', read).off('error', ignore).off('end', end).off('close', done)
    }
    const end = (): void => void socket.destroy()
    const read = (data: Buffer): void => {
      head = head.length === 0 ? data : Buffer.concat([head, data])
      try {
        const header = readProxyHeader(head)
        if (header === undefined && head.length < maxProxyHeaderBytes) return
        done()
        if (header === undefined) throw new ProxyHeaderError('too long')
        setPeer(socket, header.peer)
        if (head.length > header.bytes) socket.unshift(head.subarray(header.bytes))
        for (const listener of listeners) listener.call(server, socket)
      } catch (error) {
        if (!(error instanceof ProxyHeaderError)) throw error
        done()
        log.error({ reason: error.message }, 'a connection of the TLS door does not say who it is from')
        socket.destroy()
      }
    }
    socket.on('data', read).on('error', ignore).on('end', end).on('close', done)
  })
}
