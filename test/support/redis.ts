import { spawnSync } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { ServerProcess } from './child.js'
import { freePort } from './free-port.js'
import { LocalServer } from './local-server.js'
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
export class RedisServer extends LocalServer {
  private constructor(
    folder: string,
    port: number,
    readonly args: readonly string[],
  ) {
    super(folder, port)
  }

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

  override async start(): Promise<void> {
    const base = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder]
    const args = [...base, '--save', '', '--appendonly', 'no', ...this.args]
    this.process = ServerProcess.start('redis-server', args, join(this.folder, 'redis.log'))
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
}
