import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Agent, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { AccessSettings } from '../../api/access.js'
import { isModelPath } from '../../api/connection-switch.js'
import { guard } from '../../api/guard.js'
import { relay } from '../../api/relay.js'
import { checkHostHeader, originForm } from '../../api/request-target.js'
import { sendProblem } from '../../api/send-problem.js'
import type { TokenGuesses } from '../../api/token-guesses.js'
import { offersWebSocket } from '../../api/upgrade-offers.js'
import { sendUpgradeBack } from './upgrade-back.js'

export type AdoptedSettings = Readonly<{
  access: AccessSettings
  guesses: TokenGuesses
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
      // What is sent back is counted there.
      if (!isModelPath(request.url)) return this.#sendBack(request, reply)
      await settings.guesses.look(request.ip, request.headers, settings.access)
      await check(request, reply)
    })
    app.addHook('onClose', () => this.#back.destroy())
    app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (this.takesUpgrade(request)) sendUpgradeBack(request, socket, head, settings.returnPath)
    })
  }

  /** @param head - what was read of the connection. */
  adopt(socket: Socket, head: Uint8Array): void {
    this.#sockets.add(socket)
    socket.unshift(head)
    this.app.server.emit('connection', socket)
  }

  /** Whether a request offers to become a stream, which is not ours. */
  takesUpgrade(request: IncomingMessage): boolean {
    return this.#sockets.has(request.socket) && offersWebSocket(request) && !isModelPath(originForm(request))
  }

  /** From here on nothing new is begun. */
  refuse(): void {
    this.#draining = true
  }

  #sendBack({ raw, ip }: FastifyRequest, reply: FastifyReply): void {
    try {
      checkHostHeader(raw)
    } catch (error) {
      // As there, where it would arrive with one.
      return void sendProblem(reply, error)
    }
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
