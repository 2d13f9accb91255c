import { execFile } from 'node:child_process'
import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { freePort } from '../../support/free-port.js'
import { mainScript } from '../../support/gantry-process.js'
import { type ServiceOptions, TestService } from '../../support/service.js'
import { tempDir } from '../../support/temp-dir.js'
import { TestAuthority } from '../../support/test-authority.js'
import { until } from '../../support/until.js'

/** Each starts a service. */
vi.setConfig({ testTimeout: 120_000 })

const root = join(import.meta.dirname, '../../..')

type Ended = Readonly<{ code: number; stdout: string; stderr: string }>

/** Whoever asks sees the services that have the same temporary folder: other tests have another one. */
function asker(tmp = tempDir()) {
  const env = { TMPDIR: tmp }
  const run = async (command: string, args: readonly string[]): Promise<Ended> => {
    try {
      return { code: 0, ...(await promisify(execFile)(command, args, { env: { ...process.env, ...env } })) }
    } catch (error) {
      return error as Ended
    }
  }
  const health = (...args: readonly string[]) => run(process.execPath, [mainScript, 'health', ...args])
  const start = async (options: ServiceOptions = {}) => {
    const service = await TestService.start({
      ...options,
      env,
      pipeline: { engines: 0, ...options.pipeline },
    })
    onTestFinished(() => service[Symbol.asyncDispose]())
    return service
  }
  return { run, health, start }
}

function authorityOfTest(): TestAuthority {
  const authority = new TestAuthority()
  onTestFinished(() => authority.remove())
  return authority
}

/** A service whose clients need a certificate. */
function closed(authority: TestAuthority): ServiceOptions {
  const { cert, key } = authority.issue('client')
  return {
    server: { tls: { ...authority.issue('service'), clientCa: authority.ca } },
    trust: { ca: authority.text(authority.ca), cert: authority.text(cert), key: authority.text(key) },
  }
}

describe('gantry health', () => {
  it('R90: asks a service of this machine whatever its ports are', async () => {
    const { health, start } = asker()
    const none = await health()
    expect([none.code, none.stderr]).toEqual([
      1,
      expect.stringContaining('no service of this user runs here'),
    ])
    const service = await start()
    const { code, stdout } = await health()
    expect([code, stdout]).toEqual([0, `e2e at ${service.url} (process ${service.pid}) is healthy\n`])
    service.kill('SIGKILL')
    await service.exited()
    expect((await health()).code).toBe(1)
  })

  it('R90: asks one that shows TLS and wants certificates, and a token, needing none itself', async () => {
    const { health, start } = asker()
    const options = closed(authorityOfTest())
    const service = await start({
      ...options,
      server: { ...options.server, token: 'a-token-of-this-test' },
    })
    const { code, stdout } = await health('--json', '--ready')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      healthy: true,
      services: [{ healthy: true, service: `e2e at ${service.url} (process ${service.pid})`, reasons: [] }],
    })
  })

  it('R90: is what the images ask themselves with', async () => {
    const { run, start } = asker()
    await start(closed(authorityOfTest()))
    const commands = [
      ...readFileSync(join(root, 'Dockerfile'), 'utf8').matchAll(/^HEALTHCHECK .*\\\n +CMD (\[.*\])$/gm),
    ].map(([, list = '']) => JSON.parse(list) as string[])
    expect(commands).toHaveLength(2)
    for (const [command = '', ...args] of commands) {
      const here = args.map((arg) => arg.replace(/^\/app\//, `${root}/`))
      expect(await run(command, here)).toMatchObject({ code: 0 })
    }
  })

  it('R90: tells a service that hangs', async () => {
    const { health, start } = asker()
    const service = await start()
    service.kill('SIGSTOP')
    const { code, stdout } = await health('--timeout', '1')
    expect([code, stdout]).toEqual([1, expect.stringContaining('does not answer within 1 s')])
  })

  it('tells of one that is alive and not ready, and fails with --ready alone', async () => {
    const { health, start } = asker()
    await start({
      startedWhen: 'answering',
      pipeline: {
        // A model server that follows a repository waits for it.
        models: { repository: join(tempDir(), 'none'), control: 'poll' },
        modelServer: { enabled: true },
      },
    })
    expect((await health()).code).toBe(0)
    expect((await health('--ready')).code).toBe(1)
  })

  it('chooses by pipeline file', async () => {
    const { health, start } = asker()
    const [one, other] = [await start(), await start()]
    expect((await health()).stdout.split('\n')).toHaveLength(3)
    const { code, stdout } = await health('-c', join(one.dir, 'pipeline.yaml'))
    expect([code, stdout]).toEqual([0, expect.stringContaining(`process ${one.pid})`)])
    expect(stdout).not.toContain(`process ${other.pid})`)
    const none = await health('-c', '/nowhere/pipeline.yaml')
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('runs /nowhere/pipeline.yaml')])
  })

  it('finds the socket of a service whose temporary folder has a long path', async () => {
    const long = join(tempDir(), 'x'.repeat(100))
    const { run } = asker()
    await run('mkdir', [long])
    const { health, start } = asker(realpathSync(long))
    const service = await start()
    const { code, stdout } = await health('-c', join(service.dir, 'pipeline.yaml'))
    expect([code, stdout]).toEqual([0, expect.stringContaining(`process ${service.pid})`)])
  })

  it('R83: tells that the process that ends TLS is away, and /readyz names it', async () => {
    const { health, run, start } = asker()
    const service = await start(closed(authorityOfTest()))
    expect(await service.readiness()).toMatchObject({ tlsDoor: { state: 'ready', restarts: 0 } })
    // The first death is mended at once; each one after it takes longer, until somebody who asks comes in between.
    const told = await until(
      'that it is away',
      async () => {
        await run('pkill', ['-KILL', '-P', String(service.pid), '-f', 'tls-door/main'])
        const { code, stdout } = await health()
        return code === 1 ? stdout : undefined
      },
      60_000,
    )
    expect(told).toContain('the process that ends TLS is restarting')
    await until('another one', async () => (await health()).code === 0, 60_000)
    const { tlsDoor } = await service.readiness()
    expect(tlsDoor?.state).toBe('ready')
    expect(tlsDoor?.restarts).toBeGreaterThan(0)
  })

  it('asks an address by --url', async () => {
    const { health, start } = asker()
    const authority = authorityOfTest()
    const service = await start(closed(authority))
    const { cert, key } = authority.issue('other')
    const asked = ['--url', service.url, '--ca', authority.ca]
    expect((await health(...asked, '--cert', cert, '--key', key, '--ready')).code).toBe(0)
    const stranger = await health(...asked)
    expect([stranger.code, stranger.stderr]).toEqual([1, expect.stringContaining('--cert FILE')])
    const none = await health('--url', `http://127.0.0.1:${await freePort()}`)
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('no server answers')])
  })
})
