import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { tinyRepository, type TinyRepository } from '../bench/tiny-model.js'
import { mainScript } from '../support/gantry-process.js'
import { redLine, setOf } from '../support/label-sets.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { TestAuthority } from '../support/test-authority.js'
import { tritonClients } from '../support/triton-clients.js'
import { until } from '../support/until.js'

/** Each starts programs that load models. */
vi.setConfig({ testTimeout: 120_000 })

const suite = join(import.meta.dirname, '../clients/tls_suite.py')

type Ended = Readonly<{ code: number; stdout: string; stderr: string }>

async function ended(command: string, args: readonly string[]): Promise<Ended> {
  try {
    return { code: 0, ...(await promisify(execFile)(command, args, { timeout: 100_000 })) }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, stdout, stderr }
  }
}

const gantry = (...args: readonly string[]) => ended(process.execPath, [mainScript, ...args])

describe.each(['with server.tls', 'that asks clients for a certificate'] as const)('a service %s', (kind) => {
  let authority: TestAuthority
  let tiny: TinyRepository
  let reds: string
  let service: TestService
  let grpcPort: number
  /** What a client must show besides knowing the CA. */
  let shown: readonly string[]

  beforeAll(async () => {
    authority = new TestAuthority()
    tiny = tinyRepository()
    reds = mkdtempSync(join(tmpdir(), 'gantry-test-'))
    addModel(reds, 'red', { onnx: redDetector('uint8-nhwc'), config: 'max_batch_size: 4' })
    const own = authority.issue('client')
    const withCa = kind === 'with server.tls' ? {} : { clientCa: authority.ca }
    shown = kind === 'with server.tls' ? [] : ['--cert', own.cert, '--key', own.key]
    service = await TestService.start({
      server: { tls: { ...authority.issue('service'), ...withCa } },
      trust: {
        ca: authority.text(authority.ca),
        cert: authority.text(own.cert),
        key: authority.text(own.key),
      },
      pipeline: {
        engines: 0,
        models: { repository: [tiny.dir, reds], control: 'explicit', load: ['tiny', 'red'] },
        modelServer: { enabled: true },
      },
    })
    const isReady = async (model: string) => (await service.fetch(`/v2/models/${model}/ready`)).ok
    await until('the models', async () => (await isReady('tiny')) && (await isReady('red')), 60_000)
    grpcPort = await until('gRPC', async () => (await service.ready()).modelServer?.grpcPort ?? undefined)
  }, 120_000)

  afterAll(async () => {
    await service[Symbol.asyncDispose]()
    authority.remove()
    for (const dir of [tiny.dir, reds]) rmSync(dir, { recursive: true, force: true })
  })

  const urls = () => [service.url, `grpcs://127.0.0.1:${grpcPort}`]
  const trusted = () => ['--ca', authority.ca, ...shown]

  /** It works for who knows the CA and shows what is asked for, and tells anybody else which flag is missing. */
  async function isAskedBy(args: readonly string[]): Promise<Ended> {
    const stranger = await gantry(...args)
    expect(stranger.stderr).toContain('--ca FILE')
    expect(stranger.code).not.toBe(0)
    if (shown.length > 0) {
      const nameless = await gantry(...args, '--ca', authority.ca)
      expect(nameless.stderr).toContain('--cert FILE --key FILE')
      expect(nameless.code).not.toBe(0)
    }
    const known = await gantry(...args, ...trusted())
    expect([known.code, known.stderr]).toEqual([0, ''])
    return known
  }

  it('is asked by gantry models', async () => {
    const listed = await isAskedBy(['models', 'list', '--json', '--url', service.url])
    expect(listed.stdout).toContain('"tiny"')
    await isAskedBy(['models', 'load', 'tiny', '--json', '--url', service.url])
  })

  it('is asked by gantry eval', async () => {
    const set = await setOf({
      'data.yaml': 'val: images\nnames: [red]\n',
      'images/0.png': 250,
      'labels/0.txt': redLine(0),
    })
    for (const url of urls()) {
      const { stdout } = await isAskedBy(['eval', 'red', '-d', set, '-r', reds, '--json', '--url', url])
      expect(JSON.parse(stdout)).toMatchObject({ models: [{ summary: { ar1: 1 } }] })
    }
  })

  it('is asked by gantry batch', async () => {
    const set = await setOf({ 'a.png': 250 })
    for (const [index, url] of urls().entries()) {
      const out = join(set, `${index}.jsonl`)
      const source = ['-m', 'red', '-r', reds, '--url', url, '--patience', '0']
      await isAskedBy(['batch', join(set, 'a.png'), '-o', out, ...source, '--quiet', '--restart'])
      expect(readFileSync(out, 'utf8')).toContain('"red"')
    }
  })

  it('is asked by gantry perf', async () => {
    const short = ['--window-ms', '100', '--max-windows', '3', '--json']
    for (const url of urls()) await isAskedBy(['perf', '-m', 'tiny', '--url', url, ...short])
  })

  it('is asked by gantry optimize whether it takes the result', async () => {
    const apply = ['optimize', 'red', '-r', reds, '--apply', `${service.url}/elsewhere`]
    expect((await gantry(...apply)).stderr).toContain('--ca FILE')
    const { stderr } = await gantry(...apply, ...trusted())
    expect(stderr).toContain(`the server at ${service.url}/elsewhere answers`)
  })

  it.skipIf(tritonClients === undefined)('is asked by tritonclient', async () => {
    const { python = '' } = tritonClients ?? {}
    const own = shown.filter((word) => !word.startsWith('--'))
    for (const [way, port] of [
      ['http', service.httpPort],
      ['grpc', grpcPort],
    ] as const) {
      const { stdout, code } = await ended(python, [suite, way, `localhost:${port}`, authority.ca, ...own])
      expect([code, stdout]).toEqual([0, '(256,) True\n'])
    }
  })
})

describe('flags of certificates', () => {
  it.each([
    [['--ca', '/nowhere/ca.pem'], '--ca /nowhere/ca.pem is not there'],
    [['--ca', tmpdir()], `--ca ${tmpdir()} is a folder`],
    [['--ca', mainScript], 'holds no certificate in PEM'],
    [['--cert', mainScript], '--cert and --key belong together'],
  ])('%j are refused with what to do', async (flags, problem) => {
    const { code, stderr } = await gantry('models', 'list', '--url', 'https://127.0.0.1:9', ...flags)
    expect(stderr).toContain(problem)
    expect(stderr).toMatch(/\nhint: ./)
    expect(code).toBe(2)
  })

  it('are of a server', async () => {
    const { code, stderr } = await gantry('batch', 'a.png', '-o', 'a.jsonl', '--ca', '/nowhere')
    expect([code, stderr]).toEqual([2, expect.stringContaining('--ca is of a server')])
  })

  it('tell what speaks no TLS', async () => {
    await using service = await TestService.start({ pipeline: { engines: 0 } })
    const url = service.url.replace('http', 'https')
    const { code, stderr } = await gantry('models', 'list', '--url', url)
    expect(stderr).toContain('speaks no TLS')
    expect(code).not.toBe(0)
  })
})
