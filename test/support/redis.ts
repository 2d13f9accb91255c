import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { ServerProcess } from './child.js'
import { freePort } from './free-port.js'
import { until } from './until.js'

/** Why no Redis can be started here, or undefined when one can. Skipping is loud, and in CI it is a failure. */
export function redisMissing(): string | undefined {
  if (spawnSync('redis-server', ['--version'], { stdio: 'ignore' }).status === 0) return undefined
  const reason = 'no redis-server on the PATH (Debian: redis-server)'
  if (process.env['CI']) throw new Error(`Redis tests must run in CI: ${reason}`)
  process.stderr.write(`\nSKIPPED: tests against a real Redis: ${reason}\n`)
  return reason
}

/** A real Redis on a loopback port of its own, without persistence. */
export class RedisServer {
  #process: ServerProcess | undefined

  private constructor(
    readonly folder: string,
    readonly port: number,
    readonly args: readonly string[],
  ) {}

  /** Prepares folder and port without starting. @param args - further options of redis-server. */
  static async prepare(args: readonly string[] = []): Promise<RedisServer> {
    return new RedisServer(await mkdtemp(join(tmpdir(), 'gantry-redis-')), await freePort(), args)
  }

  static async start(args: readonly string[] = []): Promise<RedisServer> {
    const server = await RedisServer.prepare(args)
    await server.start()
    return server
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  async start(): Promise<void> {
    const base = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder]
    const args = [...base, '--save', '', '--appendonly', 'no', ...this.args]
    this.#process = ServerProcess.start('redis-server', args, join(this.folder, 'redis.log'))
    const client = this.client()
    try {
      await until('Redis', async () => (await client.ping()) === 'PONG')
    } finally {
      client.disconnect()
    }
  }

  /** A client of the test itself. The caller disconnects it. */
  client(): Redis {
    const client = new Redis(this.url, { retryStrategy: () => 50, maxRetriesPerRequest: null })
    client.on('error', () => undefined)
    return client
  }

  freeze(): void {
    this.#process?.freeze()
  }

  resume(): void {
    this.#process?.resume()
  }

  /** As a crash. */
  async kill(): Promise<void> {
    await this.#process?.end('SIGKILL')
  }

  async stop(): Promise<void> {
    await this.kill()
    await rm(this.folder, { recursive: true, force: true })
  }
}
