import { createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { checkSinks } from '../../../src/cli/checks/sinks-check.js'
import { pipelineSchema } from '../../../src/config/pipeline.js'
import { Mosquitto, mosquittoMissing } from '../../support/mosquitto.js'
import { WebhookReceiver } from '../../support/sinks.js'
import { until } from '../../support/until.js'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const check = (sinks: unknown, network = true) =>
  checkSinks(pipelineSchema.parse({ apiVersion: 'gantry/v1', sinks }), network)

async function unusedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

describe('checkSinks', () => {
  it('connects to a webhook and posts nothing', async () => {
    const receiver = await WebhookReceiver.start()
    onTestFinished(() => receiver.stop())
    expect(await check({ webhook: { url: receiver.url, secret } })).toEqual([
      { subject: `webhook 127.0.0.1:${receiver.port}`, state: 'ok', detail: 'takes connections' },
    ])
    await until('the connection', () => receiver.connections === 1)
    expect(receiver.posted).toEqual([])
  })

  it('says what is wrong with one, and how to mend it', async () => {
    const port = await unusedPort()
    const webhook = [
      { name: 'gone', url: `http://127.0.0.1:${port}/`, secret },
      { name: 'cloud', url: 'http://169.254.169.254/latest/?token=s3cr3t', secret },
      { name: 'unknown', url: 'https://hooks.invalid/', secret },
    ]
    const found = await check({ webhook })
    expect(found).toMatchObject([
      {
        subject: `webhook gone 127.0.0.1:${port}`,
        state: 'failed',
        fix: expect.stringContaining('sinks.webhook[0].url') as string,
      },
      {
        state: 'failed',
        detail: expect.stringContaining('a metadata service of a cloud') as string,
        fix: expect.stringContaining('sinks.webhook[1].url') as string,
      },
      { state: 'failed', detail: expect.stringContaining('no address is known for hooks.invalid') as string },
    ])
    expect(JSON.stringify(found)).not.toContain('s3cr3t')
    expect((await check({ webhook }, false)).map(({ state }) => state)).toEqual([
      'skipped',
      'skipped',
      'skipped',
    ])
  })

  it('warns of what works, and should not be so', async () => {
    const url = 'http://hooks.invalid/'
    const warnings = (
      await check({ webhook: { url, headers: { authorization: 'x' }, filter: { cameras: ['dok'] } } }, false)
    )
      .concat(
        await check(
          { webhook: { url, secret: 'short' }, mqtt: { url: 'mqtt://b', username: 'u', password: 'p' } },
          false,
        ),
      )
      .filter(({ state }) => state === 'warning')
      .map(({ detail }) => detail)
    expect(warnings).toEqual([
      'its receiver cannot tell who posts: there is no signature',
      'its headers travel without TLS',
      'sinks.webhook.filter.cameras names cameras that this file does not have: dok',
      'the key of its signature has less than 24 bytes',
      'the login travels without TLS',
    ])
  })
})

describe.skipIf(mosquittoMissing() !== undefined)('checkSinks and a broker of MQTT', () => {
  it('logs in, leaves what is retained alone, and tells of a login that is refused', async () => {
    const broker = await Mosquitto.prepare(['allow_anonymous false'])
    onTestFinished(() => broker.stop())
    const lines = [`password_file ${await broker.passwordFile('u', 'right')}`, 'allow_anonymous false']
    const server = await Mosquitto.start(lines)
    onTestFinished(() => server.stop())
    const heard = await server.hear('#', { username: 'u', password: 'right' })
    const mqtt = [
      { name: 'right', url: server.url, username: 'u', password: 'right' },
      { name: 'wrong', url: server.url, username: 'u', password: 'wr0ng' },
    ]
    const found = (await check({ mqtt })).filter(({ state }) => state !== 'warning')
    expect(found).toMatchObject([
      { subject: `mqtt right 127.0.0.1:${server.port}`, state: 'ok' },
      {
        state: 'failed',
        detail: expect.stringContaining('Not authorized') as string,
        fix: expect.stringContaining('sinks.mqtt[1].username') as string,
      },
    ])
    expect(JSON.stringify(found)).not.toContain('wr0ng')
    expect(heard).toEqual([])
  })
})
