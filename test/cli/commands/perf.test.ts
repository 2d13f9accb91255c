import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { run } from '../../../src/cli/program.js'
import { fakeTerminal } from '../../support/fake-terminal.js'
import { freePort } from '../../support/free-port.js'
import { GantryProcess } from '../../support/gantry-process.js'
import { clientRepository } from '../../support/model-repository.js'
import { servedModels } from '../../support/served-models.js'
import { TestService } from '../../support/service.js'
import { tempDir } from '../../support/temp-dir.js'
import { tlsFront } from '../../support/tls-front.js'
import { until } from '../../support/until.js'

const models = { plain: { datatype: 'FP32', shape: [-1, 4] } } as const
const quick = ['--window-ms', '100', '--max-windows', '3', '--stability', '900']

async function perf(...args: readonly string[]) {
  const terminal = fakeTerminal()
  const code = await run(['perf', ...quick, ...args], terminal)
  return { code, out: terminal.stdout(), err: terminal.stderr() }
}

describe('gantry perf', () => {
  it('prints a row for each level, and writes CSV, JSON and a page', async () => {
    const { http } = await servedModels(models)
    const dir = tempDir()
    const files = [
      '--csv',
      join(dir, 'a.csv'),
      '--save',
      join(dir, 'a.json'),
      '--report',
      join(dir, 'a.html'),
    ]
    const { code, out } = await perf('-u', http, '-m', 'plain', '--concurrency', '1:3:2', ...files)
    expect(code).toBe(0)
    const [head, ...rows] = out.trim().split('\n')
    expect(head).toMatch(/^CONCURRENCY +INFERENCES\/S +P50 MS/)
    expect(rows.map((row) => row.split(/ +/)[0])).toEqual(['1', '3'])
    expect(readFileSync(join(dir, 'a.csv'), 'utf8')).toMatch(/^Concurrency,Inferences\/Second,/)
    expect(readFileSync(join(dir, 'a.html'), 'utf8')).toContain('<svg')

    const compared = await perf('--compare', join(dir, 'a.json'), join(dir, 'a.json'))
    expect(compared.code).toBe(0)
    expect(compared.out.split('\n')[1]).toMatch(/^CONCURRENCY +INFERENCES\/S +RATIO/)
    expect(compared.out).toContain('1.00')
  })

  it('prints the report as JSON, and nothing else', async () => {
    const { grpc } = await servedModels(models)
    const { code, out, err } = await perf('-u', grpc, '-m', 'plain', '--json')
    expect([code, err]).toEqual([0, ''])
    expect(JSON.parse(out)).toMatchObject({
      gantryPerf: 1,
      protocol: 'grpc',
      levels: [{ level: 1, errors: 0 }],
    })
  })

  it.each([
    [['--concurrency', '3:1'], 'it ends before it begins'],
    [['--concurrency', '1.5'], 'not whole'],
    [['--request-rate', '0'], 'out of range'],
    [['--cameras', '1:x'], 'it is no range'],
    [['--concurrency', '1', '--request-rate', '1'], 'two loads'],
    [['--binary-search'], '--latency-threshold'],
    [['--latency-threshold', '-1'], '--latency-threshold is "-1"'],
    [['--window-ms', '1'], '--window-ms is "1"'],
    [['--shape', 'x'], '--shape x'],
    [['--clip', 'a.mp4'], '--clip is of cameras'],
    [['-u', 'ftp://x'], 'no protocol of model servers'],
    [['--csv', '/nowhere/a.csv'], '/nowhere/a.csv'],
    [['--ca', '/nowhere'], '--ca /nowhere'],
    [['--compare', 'a.json'], 'got 1 files'],
    [['--compare', '/a.json', '/b.json'], '/a.json is no report'],
  ])('refuses %j before anything is measured', async (args, problem) => {
    const { code, out, err } = await perf('-m', 'plain', ...args)
    expect(out).toBe('')
    expect(err).toContain(problem)
    expect(err).toMatch(/\nhint: ./)
    expect(code).toBe(args[0] === '--csv' ? 1 : 2)
  })

  it.each([
    ['http', 'https'],
    ['grpc', 'grpcs'],
  ] as const)('measures %s over TLS, where --ca vouches for the server', async (way, scheme) => {
    const served = await servedModels(models)
    const { port, files } = await tlsFront(Number(new URL(served[way]).port))
    const args = ['-u', `${scheme}://127.0.0.1:${port}`, '-m', 'plain', '--concurrency', '3']
    const { code, out, err } = await perf(...args, '--ca', files.certificateFile, '--json')
    expect([code, err]).toEqual([0, ''])
    expect(JSON.parse(out)).toMatchObject({ protocol: way, levels: [{ level: 3, errors: 0 }] })
    const refused = await perf(...args)
    expect(refused.code).toBe(1)
    expect(refused.err).toMatch(/GANTRY_SERVER_UNREACHABLE: .*self-signed certificate/)
    expect(refused.err).toContain('--ca')
  })

  it('R50: says that no server is there', async () => {
    const { code, err } = await perf('-m', 'plain', '-u', `127.0.0.1:${await freePort()}`)
    expect(code).toBe(1)
    expect(err).toMatch(/GANTRY_SERVER_UNREACHABLE: no server answers at http:\/\/127/)
  })

  it('R50: says that another port is meant, and how the models of a server are seen', async () => {
    const { http, grpc } = await servedModels(models)
    const page = createServer((_, response) => response.writeHead(404).end('not here'))
    page.listen(0, '127.0.0.1')
    await once(page, 'listening')
    onTestFinished(() => void page.close())
    const other = `http://127.0.0.1:${(page.address() as AddressInfo).port}`
    for (const [url, model, hint] of [
      [http.replace('http:', 'grpc:'), 'plain', 'speaks no gRPC: name the port that does'],
      [grpc.replace('grpc:', 'http:'), 'plain', 'the right port: 8000 for HTTP, 8001 for gRPC?'],
      [other, 'plain', 'the right port: 8000 for HTTP, 8001 for gRPC?'],
      [http, 'plan', `gantry models list --url ${http}`],
    ] as const)
      expect((await perf('-m', model, '-u', url)).err, url).toContain(hint)
  })

  it('R50: prints what it has measured when the disk is full, and fails', async () => {
    const { http } = await servedModels(models)
    const { code, out, err } = await perf('-u', http, '-m', 'plain', '--csv', '/dev/full')
    expect(code).toBe(1)
    expect(out.trim().split('\n')).toHaveLength(2)
    expect(err).toContain('cannot write /dev/full: the disk is full')
  })

  it('R50: keeps what it has at Ctrl-C, and ends with 130', async () => {
    const { http } = await servedModels(models)
    const save = join(tempDir(), 'a.json')
    const args = [
      '-u',
      http,
      '-m',
      'plain',
      '--concurrency',
      '1:99',
      '--window-ms',
      '300',
      '--stability',
      '900',
    ]
    const gantry = new GantryProcess(['perf', ...args, '--save', save])
    await until('a row', () => gantry.stdout.split('\n').length > 2, 30_000)
    gantry.child.kill('SIGINT')
    expect(await gantry.ended()).toBe(130)
    expect(gantry.stderr).not.toContain('error')
    const report = JSON.parse(readFileSync(save, 'utf8')) as { interrupted: boolean; levels: unknown[] }
    expect(report).toMatchObject({
      interrupted: true,
      levels: [{ level: 1, steady: true }, ...report.levels.slice(1)],
    })
  })
})

describe('gantry perf with a service', () => {
  const repository = clientRepository()
  let service: TestService

  beforeAll(async () => {
    service = await TestService.start({
      pipeline: {
        modelServer: { enabled: true },
        models: {
          repository: [repository.models, join(import.meta.dirname, '../../../models')],
          control: 'explicit',
          load: ['add_sub', 'echo_picture'],
        },
      },
    })
    await until('models', async () => (await service.fetch('/v2/models/echo_picture/ready')).ok, 60_000)
  }, 120_000)
  afterAll(async () => {
    await service[Symbol.asyncDispose]()
    rmSync(repository.dir, { recursive: true, force: true })
  })

  const cameras = async () =>
    (await service.json<{ items: { id: string }[] }>('/api/v1/cameras')).items.map(({ id }) => id)

  it('gives it cameras, measures their results and takes the cameras away', { timeout: 90_000 }, async () => {
    const { code, out } = await perf(
      '-u',
      service.url,
      '--cameras',
      '1:2',
      '--fps',
      '2',
      '--window-ms',
      '1000',
      '--json',
    )
    expect(code).toBe(0)
    const report = JSON.parse(out) as {
      levels: { level: number; inferencesPerSecond: number; splitUs: { server: { computeInfer: number } } }[]
    }
    expect(report).toMatchObject({ load: { kind: 'cameras', fps: 2, decodedBy: 'service' } })
    expect(report.levels.map(({ level }) => level)).toEqual([1, 2])
    for (const { inferencesPerSecond, splitUs } of report.levels) {
      expect(inferencesPerSecond).toBeGreaterThan(0)
      expect(splitUs.server.computeInfer).toBeGreaterThan(0)
    }
    expect(await cameras()).toEqual([])
  })

  it('R50: takes the cameras away also after Ctrl-C', { timeout: 60_000 }, async () => {
    const gantry = new GantryProcess([
      'perf',
      '-u',
      service.url,
      '--cameras',
      '2',
      '--fps',
      '2',
      '--window-ms',
      '60000',
    ])
    await until('both cameras', async () => (await cameras()).length === 2, 30_000)
    gantry.child.kill('SIGINT')
    expect(await gantry.ended()).toBe(130)
    expect(await cameras()).toEqual([])
  })

  it(
    'sends frames of cameras that it decodes itself, as to any other server',
    { timeout: 60_000 },
    async () => {
      const args = [
        '-u',
        service.url,
        '-m',
        'echo_picture',
        '--cameras',
        '2',
        '--fps',
        '5',
        '--window-ms',
        '1500',
        '--json',
      ]
      const { code, out, err } = await perf(...args)
      expect([code, err]).toEqual([0, ''])
      expect(JSON.parse(out)).toMatchObject({
        load: { decodedBy: 'client' },
        inputs: [{ datatype: 'UINT8', shape: [1, 640, 640, 3] }],
        levels: [{ level: 2, errors: 0 }],
      })
    },
  )

  it('sends frames of a clip', { timeout: 60_000 }, async () => {
    const clip = join(import.meta.dirname, '../../../pipelines/demo/clips/dock.mp4')
    const { code, out } = await perf(
      '-u',
      service.url,
      '-m',
      'echo_picture',
      '--input-data',
      clip,
      '-b',
      '2',
      '--window-ms',
      '1000',
      '--json',
    )
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({ inputData: clip, batchSize: 2, levels: [{ errors: 0 }] })
  })

  it('refuses a clip that cannot be decoded', { timeout: 60_000 }, async () => {
    const args = ['-u', service.url, '--cameras', '1', '--clip', import.meta.filename]
    expect(await perf(...args)).toMatchObject({
      code: 1,
      err: expect.stringContaining('cannot be served') as string,
    })
  })

  it('R50: keeps what it has when the service ends', { timeout: 60_000 }, async () => {
    const endless = ['--window-ms', '1000', '--max-windows', '900', '--stability', '0.1']
    const gantry = new GantryProcess([
      'perf',
      '-u',
      service.url,
      '--cameras',
      '1:4',
      '--fps',
      '5',
      ...endless,
    ])
    await until('a window', () => gantry.stderr.includes('window 1'), 40_000)
    service.kill('SIGKILL')
    expect(await gantry.ended()).toBe(1)
    expect(gantry.stderr).toContain('GANTRY_SERVER_UNREACHABLE')
    expect(gantry.stdout.trim().split('\n')).toEqual([
      expect.anything(),
      expect.stringMatching(/^1 .* cut short/),
    ])
  })
})
