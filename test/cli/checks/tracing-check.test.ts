import { describe, expect, it, onTestFinished } from 'vitest'
import { checkTracing } from '../../../src/cli/checks/tracing-check.js'
import { tracingSchema } from '../../../src/config/tracing.js'
import { freePort } from '../../support/free-port.js'
import { OtlpReceiver } from '../../support/otlp-receiver.js'

const check = (tracing: object, network = true) =>
  checkTracing({ tracing: tracingSchema.parse(tracing) }, network)

async function receiver(): Promise<OtlpReceiver> {
  const started = await OtlpReceiver.start()
  onTestFinished(() => started.stop())
  return started
}

describe('checkTracing', () => {
  it('says nothing of what is off', async () => {
    expect(await check({})).toEqual([])
    expect(await check({ endpoint: 'http://collector:4318', enabled: false })).toEqual([])
  })

  it.each(['http/protobuf', 'grpc'] as const)(
    'asks what takes traces by %s, and sends no span',
    async (protocol) => {
      const taking = await receiver()
      const endpoint = protocol === 'grpc' ? taking.grpcUrl : taking.url
      expect(await check({ endpoint, protocol })).toEqual([
        {
          subject: `tracing ${new URL(endpoint).host}`,
          state: 'ok',
          detail: `takes spans by ${protocol}, 1 % of frames and requests`,
        },
      ])
      expect(taking.paths).toHaveLength(1)
      expect(taking.spans).toEqual([])
    },
  )

  it('warns where nobody takes them, which stops nothing else', async () => {
    const endpoint = `http://127.0.0.1:${await freePort()}`
    const found = await check({ endpoint, timeoutMs: 500 })
    expect(found).toMatchObject([
      { state: 'warning', detail: expect.stringContaining('ECONNREFUSED') as string },
    ])
    expect(found[0]?.fix).toContain('tracing.endpoint')
    const taking = await receiver()
    taking.status = 401
    expect(await check({ endpoint: taking.url })).toMatchObject([
      { state: 'warning', fix: expect.stringContaining('tracing.headers') as string },
    ])
  })

  it('S39: warns of headers that travel without TLS, and asks nobody offline', async () => {
    const headers = { authorization: 'Bearer s3cr3t' }
    const found = await check({ endpoint: 'http://collector:4318', headers }, false)
    expect(found.map(({ state }) => state)).toEqual(['skipped', 'warning'])
    expect(JSON.stringify(found)).not.toContain('s3cr3t')
  })
})
