import type { Service } from '../../lifecycle/service.js'
import type { Log } from '../../lifecycle/log.js'
import { systemLimit } from '../../lifecycle/system-limit.js'

const retryAfterMs = 5_000

/** What listens for gRPC once it is opened. */
export type OpenedGrpc = Readonly<{
  /** 0 where it listens on none. */
  port: number
  drain(withinMs: number): Promise<void>
  stop(drainMs: number): Promise<void>
}>

/** gRPC on its port. While the port is taken it is tried again, and HTTP goes on. */
export class GrpcListener<Opened extends OpenedGrpc> implements Service {
  #server: Opened | undefined
  #reason = 'not started'
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  /** @param open - one try. */
  constructor(
    readonly open: () => Promise<Opened>,
    readonly log: Log,
    readonly retryMs = retryAfterMs,
  ) {}

  /** `undefined` while there is none. */
  get server(): Opened | undefined {
    return this.#server
  }

  /** The port taken, and why there is none. */
  get state(): Readonly<{ port: number | null; reason: string }> {
    return { port: this.#server?.port || null, reason: this.#reason }
  }

  /** Resolves after the first try; never rejects. */
  async start(): Promise<void> {
    try {
      const server = await this.open()
      if (this.#stopped) return await server.stop(0)
      this.#server = server
      this.#reason = ''
      if (server.port !== 0) this.log.info({ port: server.port }, 'gRPC ready')
    } catch (error) {
      const reason = systemLimit(error)?.reason ?? (error instanceof Error ? error.message : String(error))
      if (reason !== this.#reason) this.log.error({ err: error }, 'gRPC cannot listen, trying again')
      this.#reason = reason
      this.#timer = setTimeout(() => void this.start(), this.retryMs)
    }
  }

  /** Takes no more calls. Resolves when those under way are answered, or after `withinMs`; never rejects. */
  async drain(withinMs: number): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#server?.drain(withinMs)
  }

  /** Idempotent, never rejects. */
  async stop(drainMs: number): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#server?.stop(drainMs)
  }
}
