import type { FastifyInstance } from 'fastify'
import { rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { createServer as createSocketServer, type Server as SocketServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { z } from 'zod'
import type { serverSchema } from '../config/server.js'
import { asyncApiDocument } from '../messages/asyncapi.js'
import type { Gantry } from './gantry.js'
import { atMost } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'
import type { Service } from '../lifecycle/service.js'
import { createApp, headersTimeoutMs } from './app.js'
import { isPublic } from './access.js'
import { surviveAcceptErrors } from './accept-errors.js'
import { expectPeers } from './behind-door.js'
import { ConnectionSwitch } from './connection-switch.js'
import { ListenError, PortInUseError, PublicBindError } from './errors.js'
import { modelProxy, type ModelUpstream } from './model-proxy.js'
import { Guides } from './docs/guides.js'
import { docsPage, type ApiDocument, type MessagesDocument } from './docs/docs-page.js'
import { openApiDocument } from './openapi.js'
import { servePage } from './page-files.js'
import { RequestsUnderWay } from './requests-under-way.js'
import type { Documents, RouteContext } from './route.js'
import { apiRoutes, metricsPortRoutes } from './routes/index.js'
import { StreamUpgrade } from './stream-upgrade.js'
import type { TakenPorts, TlsFront } from './tls-front.js'
import { TokenGuesses } from './token-guesses.js'
import { declineUpgrades, offersWebSocket } from './upgrade-offers.js'

export type ServerSettings = Readonly<z.output<typeof serverSchema>>

export type HttpServerOptions = Readonly<{
  gantry: Gantry
  settings: ServerSettings
  log: Log
  /** Where `/v2` is answered; without it there is no such path. */
  models?: Readonly<{ upstream: ModelUpstream; maxRequestBytes: number }>
  /** Takes the ports and ends TLS there; without it they are taken here, and speak plain HTTP. */
  tls?: TlsFront
  /** Folder of the built page. */
  webRoot?: string
  /** Longest that the sending of a request may take; default a minute. */
  requestTimeoutMs?: number
}>

/** Where `npm run build:web` puts the page; the same seen from `src/` and from `dist/`. */
const builtPage = fileURLToPath(new URL('../../dist/web', import.meta.url))

/** At the end, longest for closing what is still open. */
const closeAtMostMs = 1_000

/** Where it listens, once it runs. `metricsPort` equals `httpPort` when the two are configured the same. */
export type ServerAddress = Readonly<{ host: string; httpPort: number; metricsPort: number; url: string }>

/** `idle -> starting -> running -> draining -> stopped`, or `failed`. Each arrow happens once. */
type ServerState = 'idle' | 'starting' | 'running' | 'draining' | 'stopped' | 'failed'

export function createHttpServer(options: HttpServerOptions): HttpServer {
  return new HttpServer(options)
}

/** HTTP, WebSocket and dashboard on one port, metrics on another. */
export class HttpServer implements Service {
  #state: ServerState = 'idle'
  #draining = false
  #address: ServerAddress | undefined
  #stopped: Promise<void> | undefined
  readonly #apps: FastifyInstance[] = []
  readonly #requests: RequestsUnderWay[] = []
  readonly #upgrade: StreamUpgrade
  /** Of all ports. */
  readonly #guesses: TokenGuesses
  #switch: ConnectionSwitch | undefined
  #returns: SocketServer | undefined

  constructor(readonly options: HttpServerOptions) {
    const { gantry, settings, log } = options
    this.#guesses = new TokenGuesses(settings.maxRequestsPerMinute)
    this.#upgrade = new StreamUpgrade(gantry.stream, settings, () => this.#draining, log, this.#guesses)
  }

  get state(): ServerState {
    return this.#state
  }

  /** `undefined` until it runs. */
  get address(): ServerAddress | undefined {
    return this.#address
  }

  /**
   * @throws PublicBindError for an address others can reach without a token, PortInUseError, ListenError
   */
  async start(signal: AbortSignal): Promise<void> {
    this.#state = 'starting'
    try {
      await this.#listen()
      signal.throwIfAborted()
      this.#state = 'running'
    } catch (error) {
      this.#endSharing()
      await Promise.all(this.#apps.map((app) => app.close()))
      await this.options.tls?.stop()
      this.#state = 'failed'
      throw error
    }
  }

  /** From here on `/readyz` answers 503 and nothing new is begun; what runs goes on. The first step of a shutdown. */
  refuse(): void {
    this.#draining = true
    if (this.#state === 'running') this.#state = 'draining'
    for (const requests of this.#requests) requests.refuse()
  }

  /** Resolves when the requests that have come by now are answered, or after `withinMs`. It goes on telling new ones that it stops. */
  async answered(withinMs: number): Promise<void> {
    await Promise.all(this.#requests.map((requests) => requests.answered(withinMs)))
  }

  stop(drainMs: number): Promise<void> {
    this.#stopped ??= this.#stop(drainMs)
    return this.#stopped
  }

  async #stop(drainMs: number): Promise<void> {
    this.refuse()
    await this.answered(drainMs)
    this.#endSharing()
    const closed = this.options.gantry.stream
      .stop()
      .then(() => Promise.all(this.#apps.map((app) => app.close())))
    await atMost(
      closeAtMostMs,
      closed.catch((error: unknown) => this.options.log.warn({ err: error }, 'closing the server failed')),
    )
    for (const app of this.#apps) app.server.closeAllConnections()
    await this.options.tls?.stop()
    this.#state = 'stopped'
  }

  async #listen(): Promise<void> {
    const { gantry, settings, log, models, tls, webRoot = builtPage } = this.options
    if (isPublic(settings)) throw new PublicBindError(settings.host)
    const context: RouteContext = { gantry, draining: () => this.#draining, documents: documents() }
    const main = createApp(apiRoutes, context, settings, log, this.options.requestTimeoutMs, this.#guesses)
    this.#add(main, offersWebSocket)
    if (models) {
      modelProxy(main, { ...models, access: settings, log })
      await this.#shareConnections(main, models.upstream)
    }
    await servePage(main, webRoot)
    this.#upgrade.listen(main.server)
    surviveAcceptErrors(main.server, log)
    let metrics: FastifyInstance | undefined
    if (settings.metricsPort === 0 || settings.metricsPort !== settings.httpPort) {
      metrics = createApp(metricsPortRoutes, context, settings, log, undefined, this.#guesses)
      this.#add(metrics)
      surviveAcceptErrors(metrics.server, log)
    }
    const ports = tls
      ? await listenBehind(tls, main, metrics, log)
      : await listenOnPorts(settings, main, metrics)
    this.#address = {
      host: settings.host,
      ...ports,
      url: `${tls ? 'https' : 'http'}://${shown(settings.host)}:${ports.httpPort}/`,
    }
  }

  /** @param takes - offers of an upgrade that somebody answers. */
  #add(app: FastifyInstance, takes?: (request: IncomingMessage) => boolean): void {
    this.#apps.push(app)
    declineUpgrades(app.server, takes)
    this.#requests.push(new RequestsUnderWay(app.server))
  }

  #endSharing(): void {
    this.#switch?.close()
    this.#returns?.close()
  }

  /** Connections of model clients go to the model server; what they ask of us comes back over a socket of its own. */
  async #shareConnections({ server }: FastifyInstance, { connections }: ModelUpstream): Promise<void> {
    if (!connections) return
    const { adopt, returnPath } = connections
    const shared = new ConnectionSwitch(server, adopt, headersTimeoutMs)
    this.#switch = shared
    await rm(returnPath, { force: true })
    const returns = createSocketServer((socket) => shared.serve(socket))
    this.#returns = returns
    surviveAcceptErrors(returns, this.options.log)
    await new Promise<void>((resolve, reject) => {
      returns.once('error', reject).listen(returnPath, resolve)
    })
  }
}

async function listenOnPorts(
  { host, httpPort, metricsPort }: ServerSettings,
  main: FastifyInstance,
  metrics: FastifyInstance | undefined,
): Promise<TakenPorts> {
  const taken = await listen(main, host, httpPort, 'httpPort')
  if (metrics === undefined) return { httpPort: taken, metricsPort: taken }
  return { httpPort: taken, metricsPort: await listen(metrics, host, metricsPort, 'metricsPort') }
}

/** First here, then on the ports: whoever comes finds somebody. */
async function listenBehind(
  front: TlsFront,
  main: FastifyInstance,
  metrics: FastifyInstance | undefined,
  log: Log,
): Promise<TakenPorts> {
  const apps = [
    [main, front.paths.http],
    ...(metrics === undefined ? [] : ([[metrics, front.paths.metrics]] as const)),
  ] as const
  for (const [app, path] of apps) {
    expectPeers(app.server, headersTimeoutMs, log)
    try {
      await app.listen({ path })
    } catch (error) {
      throw new ListenError(path, error)
    }
  }
  return front.open()
}

async function listen(
  app: FastifyInstance,
  host: string,
  port: number,
  setting: 'httpPort' | 'metricsPort',
): Promise<number> {
  const address = `${shown(host)}:${port}`
  try {
    await app.listen({ host, port })
  } catch (error) {
    const inUse = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
    throw inUse ? new PortInUseError(address, setting, error) : new ListenError(address, error)
  }
  const bound = app.server.address()
  return typeof bound === 'object' && bound !== null ? bound.port : port
}

/** How this machine reaches it: browsers do not open the address that stands for all of them. */
function shown(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

/** Made of the schemas when first asked for: they change with the code only. */
function documents(): Documents {
  const guides = new Guides()
  const openapi = once(() => JSON.stringify(openApiDocument()))
  const asyncapi = once(() => JSON.stringify(asyncApiDocument()))
  const page = once(() =>
    docsPage(JSON.parse(openapi()) as ApiDocument, JSON.parse(asyncapi()) as MessagesDocument, guides.list),
  )
  return { openapi, asyncapi, page, guide: (path) => guides.page(path) }
}

function once(make: () => string): () => string {
  let made: string | undefined
  return () => (made ??= make())
}
