import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Agent } from 'node:http'
import type { Socket } from 'node:net'
import type { AccessSettings } from '../../api/access.js'
import { isModelPath } from '../../api/connection-switch.js'
import { guard } from '../../api/guard.js'
import { relay } from '../../api/relay.js'
import { checkHostHeader } from '../../api/request-target.js'

export type AdoptedSettings = Readonly<{
  access: AccessSettings
  /** Unix socket of the control process. */
  returnPath: string
}>

/**
 * Connections of clients that the control process gave away, served by an application that listens elsewhere. They are guarded here as
 * they would be there, and a request that is not for `/v2` is sent back.
 */
export class AdoptedConnections {
  readonly #sockets = new WeakSet<Socket>()
  readonly #back = new Agent({ keepAlive: true })
  #draining = false

  /** Adds its hooks to `app`, before its routes are ready. */
  constructor(
    readonly app: FastifyInstance,
    readonly settings: AdoptedSettings,
  ) {
    const check = guard(settings.access, () => this.#draining)
    app.addHook('onRequest', async (request, reply) => {
      if (!this.#sockets.has(request.raw.socket)) return
      if (isModelPath(request.url)) await check(request, reply)
      else this.#sendBack(request, reply)
    })
    app.addHook('onClose', () => this.#back.destroy())
  }

  /** @param head - what was read of the connection. */
  adopt(socket: Socket, head: Uint8Array): void {
    this.#sockets.add(socket)
    socket.unshift(head)
    this.app.server.emit('connection', socket)
  }

  /** From here on nothing new is begun. */
  refuse(): void {
    this.#draining = true
  }

  /** @throws BadRequestError */
  #sendBack({ raw, ip }: FastifyRequest, reply: FastifyReply): void {
    checkHostHeader(raw)
    reply.hijack()
    const { raw: answer } = reply
    relay(raw, answer, {
      socketPath: this.settings.returnPath,
      agent: this.#back,
      headers: { 'x-forwarded-for': ip },
      // Control is our parent: when it is gone, so are we.
      failed: () => answer.destroy(),
    })
  }
}
