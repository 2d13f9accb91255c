import { expect, it } from 'vitest'
import { GrpcClient } from '../support/grpc-client.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const token = 'a-token-of-thirty-two-characters'

it('S28: every change by request is a line of the log: who, what, from where, and no value', async () => {
  const repository = tempDir()
  addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
  await using service = await TestService.start({
    pipeline: {
      models: { repository, control: 'explicit' },
      ensemble: 'red',
      modelServer: { enabled: true },
      cameras: [{ id: 'a', url: 'push:' }],
    },
    server: { token },
  })
  const lines = () =>
    service.stderr
      .split('\n')
      .filter((line) => line.includes('"changed by request"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  await until('the model server', async () => (await service.ready()).modelServer?.state === 'ready', 30_000)

  // What changes nothing: questions, pictures, and what is refused.
  await service.fetch('/api/v1/cameras/a/frames', { method: 'POST', body: 'no picture' })
  await service.fetch('/api/v1/cameras', { method: 'POST', body: '{' })
  await service.fetch('/api/v1/cameras/nobody', { method: 'DELETE' })
  await service.json('/v2/repository/index', { method: 'POST' })
  await service.fetch('/v2/repository/models/nobody/load', { method: 'POST' })

  const camera = { id: 'b', url: 'rtsp://admin:canary@192.0.2.1/live', enabled: false }
  await service.send('POST', '/api/v1/cameras', camera)
  await service.send('PATCH', '/api/v1/cameras/b', { sampleFps: 2 })
  await service.json('/api/v1/cameras/b', { method: 'DELETE' })
  await service.json('/v2/repository/models/red/load', { method: 'POST' })
  const grpc = new GrpcClient((await service.ready()).modelServer?.grpcPort ?? 0, {
    authorization: `Bearer ${token}`,
  })
  await grpc.call('RepositoryIndex', {})
  await grpc.call('LogSettings', { settings: {} })
  await grpc.call('LogSettings', { settings: { log_verbose_level: { uint32_param: 0 } } })
  await grpc.call('RepositoryModelUnload', { model_name: 'red' })
  grpc.close()

  await until('the lines', () => lines().length >= 6)
  const told = lines().map(({ from, by, method, path, model, fields }) => ({
    from: String(from).replace(/:\d+$/, ''),
    by,
    method: String(method).replace(/^\/inference\.GRPCInferenceService\//, ''),
    path,
    model,
    fields,
  }))
  const who = { from: '127.0.0.1', by: 'token', path: undefined, model: undefined, fields: undefined }
  expect(told).toEqual([
    { ...who, method: 'POST', path: '/api/v1/cameras', fields: ['id', 'url', 'enabled'] },
    { ...who, method: 'PATCH', path: '/api/v1/cameras/b', fields: ['sampleFps'] },
    { ...who, method: 'DELETE', path: '/api/v1/cameras/b' },
    { ...who, method: 'POST', path: '/v2/repository/models/red/load' },
    { ...who, method: 'LogSettings' },
    { ...who, method: 'RepositoryModelUnload', model: 'red' },
  ])
  expect(service.stderr).not.toContain('canary')
}, 60_000)
