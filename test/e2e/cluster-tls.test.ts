import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { CameraView } from '../../src/cameras/camera-view.js'
import type { Finding } from '../../src/cli/findings.js'
import { checkCluster } from '../../src/cli/checks/cluster-check.js'
import { clusterSchema } from '../../src/config/cluster.js'
import { pipelineSchema } from '../../src/config/pipeline.js'
import { kafkaMissing } from '../support/kafka.js'
import { TestNodes } from '../support/nodes.js'
import type { TestService } from '../support/service.js'
import { TestAuthority } from '../support/test-authority.js'
import { until } from '../support/until.js'

const cameras = 4
const token = 'the-token-of-all-nodes'
const missing = await kafkaMissing()

describe.skipIf(missing !== undefined)('nodes that speak TLS', () => {
  let nodes: TestNodes
  let authority: TestAuthority
  let stranger: TestAuthority

  beforeAll(async () => {
    nodes = await TestNodes.start()
    authority = new TestAuthority()
    stranger = new TestAuthority('another')
  }, 120_000)
  afterEach(() => nodes.clear())
  afterAll(async () => {
    await nodes[Symbol.asyncDispose]()
    authority.remove()
    stranger.remove()
  })

  /** @param tls - how it asks others. @param clientCa - whose certificates it asks for */
  async function node(name: string, tls: object, { clientCa }: { clientCa?: string } = {}) {
    const { cert, key } = authority.issue(`${name}-of-${nodes.id}`)
    const shown = authority.issue('client')
    return nodes.add(name, {
      server: { token, tls: { cert, key, ...(clientCa !== undefined && { clientCa }) } },
      trust: {
        ca: authority.text(authority.ca),
        cert: authority.text(shown.cert),
        key: authority.text(shown.key),
      },
      cluster: { tls },
      pipeline: { cameras: nodes.cameras(cameras) },
    })
  }

  const viewsOf = async (service: TestService) =>
    (await service.json<{ items: CameraView[] }>('/api/v1/cameras')).items

  /** What `gantry check` says of the other nodes. */
  async function checked(name: string, tls: object, more: object = {}): Promise<readonly Finding[]> {
    const cluster = clusterSchema.parse({
      ...{ id: nodes.id, node: name, slots: 64, tls },
      topics: { cameras: `${nodes.id}.cameras`, cameraErrors: `${nodes.id}.errors` },
      kafka: { brokers: [nodes.broker.address] },
    })
    const settings = pipelineSchema.parse({
      apiVersion: 'gantry/v1',
      server: { host: '0.0.0.0', token, ...more },
    })
    return checkCluster(settings, cluster, true)
  }

  it('S44: answer for each other where they trust the private CA, with certificates where those are asked for', async () => {
    const pair = authority.issue('peer')
    const trusting = { ca: authority.ca, ...pair }
    const first = await node('a', trusting, { clientCa: authority.ca })
    const second = await node('b', trusting, { clientCa: authority.ca })
    await nodes.spread(first, cameras, 2)
    for (const service of [first, second]) {
      await nodes.spread(service, cameras, 2)
      for (const { id } of await viewsOf(service))
        expect((await service.fetch(`/api/v1/cameras/${id}/snapshot.jpg`)).status).toBe(200)
      const { incomplete } = await service.json<{ incomplete?: unknown }>('/api/v1/detections')
      expect(incomplete).toBeUndefined()
      const stream = await service.stream()
      const seen = () => new Set(stream.messages.flatMap((each) => (each.type === 'detections' ? [each.cameraId] : []))) // prettier-ignore
      await until('the stream of both', () => seen().size === cameras, 30_000)
      stream.close()
    }
    expect(await checked('c', trusting)).toContainEqual({
      ...{ subject: `cluster ${nodes.id} node a`, state: 'ok' },
      detail: expect.stringMatching(/^it answers at https:/) as string,
    })
    // Without a certificate it is not let in, and is told which setting that is.
    const refused = (await checked('c', { ca: authority.ca })).filter(({ state }) => state === 'failed')
    expect(refused).toHaveLength(2)
    for (const { detail } of refused) expect(detail).toMatch(/set cluster\.tls\.cert and cluster\.tls\.key/)
    const files = authority.issue('own')
    expect(
      await checked('c', { ca: authority.ca }, { tls: { ...files, clientCa: authority.ca } }),
    ).toContainEqual(
      expect.objectContaining({
        state: 'warning',
        fix: expect.stringMatching(/cluster\.tls\.cert/) as string,
      }),
    )
  }, 180_000)

  it('S44: a node that trusts another CA says so of the cameras of the others, and in check', async () => {
    const first = await node('a', { ca: stranger.ca })
    const second = await node('b', { ca: authority.ca })
    await nodes.spread(second, cameras, 2)
    const away = await until('the reason', async () => {
      const found = (await viewsOf(first)).filter(({ node: owner }) => owner === 'b')
      return found.some(({ status }) => status.reason.includes('does not answer')) ? found : undefined
    }, 30_000) // prettier-ignore
    for (const { status } of away)
      expect(status.reason).toMatch(/not signed by a CA that is trusted here .*set cluster\.tls\.ca/)
    const page = await first.json<{ incomplete: readonly string[] }>('/api/v1/detections')
    expect(page.incomplete).toEqual([expect.stringMatching(/^b: .*set cluster\.tls\.ca/)])
    const findings = (await checked('c', { ca: stranger.ca })).filter(({ state }) => state === 'failed')
    expect(findings.map(({ subject }) => subject).sort()).toEqual([
      `cluster ${nodes.id} node a`,
      `cluster ${nodes.id} node b`,
    ])
    for (const { detail } of findings) expect(detail).toMatch(/set cluster\.tls\.ca/)
  }, 180_000)
})
