import { createServer, type AddressInfo, type Server } from 'node:net'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runOnPipeline } from '../support/pipeline-command.js'

describe('a start that cannot be', () => {
  let dir: string
  let taken: Server
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'gantry-wrong-'))
    taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
  })
  afterAll(() => {
    rmSync(dir, { recursive: true, force: true })
    taken.close()
  })

  function serve(pipeline: Record<string, unknown>) {
    const { status, stdout, stderr } = runOnPipeline(dir, { log: { format: 'json' }, ...pipeline }, ['serve'])
    expect(stdout).toBe('')
    return { status, stderr }
  }

  it.each(['httpPort', 'metricsPort', 'grpcPort'])('names the port that is taken, %s', (setting) => {
    const { port } = taken.address() as AddressInfo
    const { status, stderr } = serve({
      server: { httpPort: 0, metricsPort: 0, grpcPort: 0, [setting]: port },
    })
    expect(status).toBe(1)
    expect(stderr).toContain(`127.0.0.1:${port} is already in use`)
    expect(stderr).toContain(`set server.${setting} to another port`)
    expect(stderr).toContain('GANTRY_PORT_IN_USE')
  })

  it('names the model that is missing', () => {
    const { status, stderr } = serve({ ensemble: 'pep' })
    expect(status).not.toBe(0)
    expect(stderr).toContain('GANTRY_MODEL_NOT_FOUND')
    expect(stderr).toContain('engines: 0')
    expect(stderr).toContain('pep')
  })

  it('names the camera whose URL is refused, and why', () => {
    const { status, stderr } = serve({ cameras: [{ id: 'a', url: 'concat:/etc/passwd|/etc/hosts' }] })
    expect(status).not.toBe(0)
    expect(stderr).toContain('concat:')
  })

  it('refuses a public address without a token', () => {
    const { status, stderr } = serve({ server: { host: '0.0.0.0', httpPort: 0, metricsPort: 0 } })
    expect(status).not.toBe(0)
    expect(stderr).toContain('GANTRY_PUBLIC_BIND')
  })

  it('tells place and remedy of every mistake in the file at once, with exit code 2', () => {
    const { status, stderr } = serve({
      cameras: [
        { id: 'a', url: 'push:', sampelFps: 3 },
        { id: 'a', url: 'push:' },
        { id: 'b b', url: 'push:' },
      ],
    })
    expect(status).toBe(2)
    expect(stderr).toMatch(/pipeline\.yaml:\d+:\d+/)
    expect(stderr).toContain('sampleFps')
    expect(stderr).toContain('cameras[2].id')
  })
})
