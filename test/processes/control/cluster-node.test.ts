import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { CameraStore } from '../../../src/cameras/camera-store.js'
import { cameraSchema, type CameraConfig } from '../../../src/config/camera.js'
import { pipelineSchema } from '../../../src/config/pipeline.js'
import { createServiceMetrics } from '../../../src/metrics/service-metrics.js'
import { ClusterNode } from '../../../src/processes/control/cluster-node.js'
import type { GantryService } from '../../../src/processes/control/service.js'
import { kafkaMissing, sharedKafka } from '../../support/kafka.js'
import { silentLog } from '../../support/silent-log.js'

const missing = await kafkaMissing()
const camera = (id: string, sampleFps: number): CameraConfig =>
  cameraSchema.parse({ id, url: 'rtsp://192.0.2.7/stream', sampleFps })

describe.skipIf(missing !== undefined)('a service that becomes a node', () => {
  let broker: Awaited<ReturnType<typeof sharedKafka>>
  let folder: string
  const open: ClusterNode[] = []

  beforeAll(async () => {
    broker = await sharedKafka()
    folder = mkdtempSync(join(tmpdir(), 'gantry-node-'))
  }, 120_000)
  afterEach(() => Promise.all(open.splice(0).map((node) => node.stop())))
  afterAll(async () => {
    await broker.release()
    rmSync(folder, { recursive: true, force: true })
  })

  async function start(id: string, fromFile: readonly CameraConfig[]): Promise<ClusterNode> {
    const topics = { cameras: `${id}.cameras`, cameraErrors: `${id}.errors` }
    const kafka = { brokers: [broker.address] }
    const config = pipelineSchema.parse({
      apiVersion: 'gantry/v1',
      store: { path: folder },
      cluster: { id, node: 'a', slots: 8, topics, kafka },
    })
    const service = {
      nodeCapacity: () => ({ cores: 2, framesPerSecond: null }),
      follow: () => Promise.resolve(),
      release: () => Promise.resolve(),
    }
    const node = await ClusterNode.open(config, {
      version: '1',
      repositories: [],
      service: () => service as unknown as GantryService,
      metrics: createServiceMetrics(),
      log: silentLog(),
    })
    open.push(node)
    await node.start(fromFile, new AbortController().signal)
    return node
  }

  it('brings along the cameras that it kept alone, once', async () => {
    const id = `node-${process.pid}`
    await new CameraStore(folder).save([camera('kept', 2), camera('both', 3)])
    const node = await start(id, [camera('filed', 4), camera('both', 5)])
    const { registry } = node.cluster
    expect([...registry.cameras.values()].map((each) => [each.id, each.sampleFps]).sort()).toEqual([
      ['both', 3],
      ['filed', 4],
      ['kept', 2],
    ])
    expect(await new CameraStore(folder).load()).toEqual([])
    expect(existsSync(join(folder, 'cameras.before-cluster.json'))).toBe(true)
    await registry.remove('kept')
    await node.stop()
    const again = await start(id, [])
    expect([...again.cluster.registry.cameras.keys()].sort()).toEqual(['both', 'filed'])
  }, 120_000)
})
