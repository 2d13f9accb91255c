import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { dockClip } from '../support/demo-cameras.js'
import { RedisServer, redisMissing } from '../support/redis.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

/** With what cameras' owners put into passwords: at sign, colon, percent, umlaut. */
const canary = 'S3cret@x:%ü'
const user = 'admin'
const spellings = [
  canary,
  encodeURIComponent(canary),
  'S3cret',
  'S3cret%40x',
  Buffer.from(`${user}:${canary}`).toString('base64'),
]

/** Every path that can be read, with the cameras' ids in place of parameters. */
async function readable(service: TestService): Promise<string[]> {
  const { paths } = await service.json<{ paths: Record<string, object> }>('/openapi.json')
  const gets = Object.keys(paths).filter((path) => 'get' in paths[path]!)
  const filled = gets.flatMap((path) =>
    /[{]/.test(path)
      ? ['works', 'refused', 'gone', 'sub', 'shut-sub', 'beside', 'shut-beside'].map((id) =>
          path.replace(/[{]\w+[}]/, id),
        )
      : [path],
  )
  return ['/', ...filled.filter((path) => !path.endsWith('/stream'))]
}

const textOf = async (url: string) => (await fetch(url)).text()

describe('credentials of a camera', () => {
  it.skipIf(redisMissing())(
    'S4: appear in no log, metric, answer, message or cached result, whether the camera works or not',
    async () => {
      const rtsp = new LoopingRtspServer()
      await rtsp.start()
      await rtsp.addStream('/open', dockClip, { credentials: { user, password: canary, scheme: 'digest' } })
      await rtsp.addStream('/shut', dockClip, { credentials: { user, password: 'other', scheme: 'digest' } })
      const redis = await RedisServer.start()
      const login = `${user}:${encodeURIComponent(canary)}`
      const service = await TestService.start({
        pipeline: {
          log: { format: 'json', level: 'debug' },
          cache: { redis: redis.url },
          cameras: [
            { id: 'works', url: rtsp.url('/open', login), sampleFps: 2 },
            { id: 'refused', url: rtsp.url('/shut', login) },
            { id: 'gone', url: `rtsp://${login}@127.0.0.1:1/nothing` },
            { id: 'sub', url: rtsp.url('/shut', login), analyseUrl: rtsp.url('/open', login), sampleFps: 2 },
            { id: 'shut-sub', url: rtsp.url('/open', login), analyseUrl: rtsp.url('/shut', login) },
            { id: 'beside', url: rtsp.url('/open'), username: user, password: canary, sampleFps: 2 },
            { id: 'shut-beside', url: rtsp.url('/shut'), username: user, password: canary },
          ],
        },
      })
      try {
        const stream = await service.stream()
        await stream.detections('works')
        await stream.detections('sub')
        await stream.detections('beside')
        await until('a refusal', async () =>
          (await service.camera('refused')).status.reason.includes('credentials'),
        )
        await until('a failure', async () => (await service.camera('gone')).status.state === 'backoff')
        const answers = await Promise.all((await readable(service)).map((path) => textOf(service.url + path)))
        const gopher = `gopher://${login}@127.0.0.1/x`
        const refusals = await Promise.all(
          [
            { id: 'bad', url: gopher },
            { id: 'bad', url: rtsp.url('/open'), analyseUrl: gopher },
            { id: 'bad', url: 'push:', analyseUrl: rtsp.url('/open', login) },
            { id: 'bad', url: `rtsp://${user}:${canary}#x@192.0.2.10/x` },
            { id: 'bad', url: rtsp.url('/open'), username: user, password: `${canary}\n` },
            { id: 'bad', url: rtsp.url('/open', login), username: user, password: canary },
            { id: 'bad', url: rtsp.url('/open'), password: canary },
            { id: 'bad', url: 'push:', username: user, password: canary },
            { id: 'bad', url: rtsp.url('/open'), username: user, password: canary, sampleFps: 0 },
          ].map((bad) =>
            service.send('POST', '/api/v1/cameras', bad).catch((error: unknown) => String(error)),
          ),
        )
        const { url, analyseUrl } = (await service.camera('sub')).config
        await service.send('PATCH', '/api/v1/cameras/sub', { url, analyseUrl })
        await stream.detections('sub')
        await service.send('PATCH', '/api/v1/cameras/works', {
          url: (await service.camera('works')).config.url,
        })
        await stream.detections('works')
        const beside = (await service.camera('beside')).config
        expect(beside).toMatchObject({ username: '***', password: '***' })
        await service.send('PATCH', '/api/v1/cameras/beside', { ...beside, id: undefined, sampleFps: 3 })
        await stream.detections('beside')
        await service.send('PATCH', '/api/v1/cameras/beside', { password: 'wrong' })
        await until('a refusal', async () =>
          (await service.camera('beside')).status.reason.includes('credentials'),
        )
        await service.send('PATCH', '/api/v1/cameras/beside', { password: canary })
        await stream.detections('beside')
        const client = new Redis(redis.url)
        const keys = await client.keys('*')
        const cached = await Promise.all(keys.map((key) => client.dump(key)))
        client.disconnect()
        const messages = JSON.stringify(stream.messages)
        stream.close()
        await service.end()
        const everything = [...answers, ...refusals, messages, ...keys, ...cached, service.stderr].join('\n')
        expect(keys.length).toBeGreaterThan(0)
        expect(service.stderr).toContain('refused')
        for (const spelling of spellings) expect(everything).not.toContain(spelling)
      } finally {
        await service[Symbol.asyncDispose]()
        await redis.stop()
        await rtsp.stop()
      }
    },
    // One of the paths loads every model of the repository.
    90_000,
  )
})
