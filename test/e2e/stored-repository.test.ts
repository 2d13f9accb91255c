import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { EnsembleView } from '../../src/api/gantry.js'
import { echoOnnx } from '../support/model-repository.js'
import { redDetector } from '../support/onnx-models.js'
import { redPicture } from '../support/red-pictures.js'
import { type S3Server, startS3 } from '../support/s3-server.js'
import { type ServiceOptions, TestService } from '../support/service.js'
import { TcpProxy } from '../support/tcp-proxy.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const echo = echoOnnx('float32', ['batch', 4])
const request = { inputs: [{ name: 'in0', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] }] }

/** A store with one model, which a service reaches by a proxy. */
async function plant(): Promise<{ server: S3Server; proxy: TcpProxy; env: NodeJS.ProcessEnv }> {
  const server = await startS3('plant')
  const proxy = await TcpProxy.start(server.port)
  onTestFinished(() => proxy.stop())
  await server.put('models/echo/1/model.onnx', echo)
  return { server, proxy, env: { ...server.env, AWS_ENDPOINT_URL: `http://127.0.0.1:${proxy.port}` } }
}

const forClients = (models: object): Pick<ServiceOptions, 'pipeline'> => ({
  pipeline: {
    engines: 0,
    modelServer: { enabled: true },
    models: { repository: 's3://plant/models', ...models },
  },
})

async function versionOf(service: TestService): Promise<string> {
  const answer = await service.send<{ model_version: string; outputs: { data: number[] }[] }>(
    'POST',
    '/v2/models/echo/infer',
    request,
  )
  expect(answer.outputs[0]?.data).toEqual([1, 2, 3, 4])
  return answer.model_version
}

/** The model server comes up after the service, and takes a version after a look or two. */
async function serves(service: TestService, version: string): Promise<void> {
  await until(`version ${version}`, async () => (await versionOf(service)) === version, 30_000)
}

const away =
  /^model repository s3:\/\/plant\/models is read as it was fetched before, since .*cannot be reached/

describe('a repository in an object store', () => {
  it('R181: is followed with poll, served while the store is away, and after a restart without it', async () => {
    const { server, proxy, env } = await plant()
    const options = { ...forClients({ control: 'poll', pollSeconds: 0.2 }), env }
    await using first = await TestService.start(options)
    await serves(first, '1')
    await server.put('models/echo/2/model.onnx', echo)
    await serves(first, '2')
    proxy.fault = { kind: 'reset' }
    await until('the reason', async () => (await first.ready()).reasons.some((reason) => away.test(reason)))
    expect(await versionOf(first)).toBe('2')
    await first.end()
    await using again = await TestService.start({ ...options, like: first })
    await serves(again, '2')
    expect((await again.ready()).reasons).toEqual([expect.stringMatching(away)])
    proxy.fault = { kind: 'none' }
    await until('no reason', async () => (await again.ready()).reasons.length === 0)
  }, 180_000)

  it('R180: is brought up to date by a load of a client', async () => {
    const { server, env } = await plant()
    await using service = await TestService.start({
      ...forClients({ control: 'explicit', load: ['echo'] }),
      env,
    })
    await serves(service, '1')
    await server.put('models/echo/2/model.onnx', echo)
    await service.send('POST', '/v2/repository/models/echo/load', {})
    expect(await versionOf(service)).toBe('2')
  }, 120_000)

  it('R181: ends the start where the store is away and nothing was fetched before, but for one that is followed', async () => {
    const { proxy, env } = await plant()
    proxy.fault = { kind: 'reset' }
    await expect(TestService.start({ ...forClients({ control: 'none' }), env })).rejects.toThrow(
      /service ended with 1:[^]*s3:\/\/plant\/models\/ cannot be reached/,
    )
    await using service = await TestService.start({
      ...forClients({ control: 'poll', pollSeconds: 0.2 }),
      env,
      startedWhen: 'answering',
    })
    const { ready, reasons } = await service.readiness()
    expect([ready, reasons.some((reason) => reason.includes('cannot be reached'))]).toEqual([false, true])
    proxy.fault = { kind: 'none' }
    await service.ready()
    await serves(service, '1')
  }, 180_000)

  it('R180: has the ensemble of cameras, and another one once that is asked for', async () => {
    const { server, env } = await plant()
    const dir = tempDir()
    writeFileSync(join(dir, 'red.png'), await redPicture({ widthPx: 64, heightPx: 64 }, 230))
    const put = async (name: string) => {
      await server.put(`models/${name}/config.pbtxt`, 'max_batch_size: 4')
      await server.put(`models/${name}/1/model.onnx`, redDetector('uint8-nhwc'))
    }
    await put('red')
    await using service = await TestService.start({
      pipeline: {
        mediaRoot: dir,
        models: { repository: 's3://plant/models' },
        ensemble: 'red',
        cameras: [{ id: 'yard', url: join(dir, 'red.png'), sampleFps: 20 }],
      },
      env,
    })
    await service.cameraIs('yard', 'live')
    await put('other')
    await service.send('PUT', '/api/v1/ensemble', {
      name: 'other',
      trial: { seconds: 5, minAgreement: 0, maxP99Ratio: 100 },
    })
    const kept = await until(
      'the other ensemble',
      async () => {
        const view = await service.json<EnsembleView>('/api/v1/ensemble')
        return view.state === 'steady' ? view : undefined
      },
      60_000,
    )
    expect(kept).toMatchObject({ name: 'other' })
  }, 180_000)
})
