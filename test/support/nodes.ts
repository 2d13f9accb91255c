import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CameraView } from '../../src/cameras/camera-view.js'
import { KafkaBroker } from './kafka.js'
import { addModel, redDetector } from './onnx-models.js'
import { type ServiceOptions, TestService } from './service.js'
import { until } from './until.js'
import { makeClip } from './video-clips.js'

const slots = 64
let made = 0

export type NodeOptions = Omit<ServiceOptions, 'pipeline'> &
  Readonly<{
    /** Laid over the pipeline file of the test. */
    pipeline?: Readonly<Record<string, unknown>>
    /** Laid over its `cluster`. */
    cluster?: Readonly<Record<string, unknown>>
  }>

/** Real services that share cameras by a real broker, with a detector of red squares. */
export class TestNodes {
  readonly nodes = new Map<string, TestService>()
  readonly id = `n${process.pid}-${(made += 1)}`

  private constructor(
    readonly broker: KafkaBroker,
    readonly folder: string,
  ) {}

  static async start(): Promise<TestNodes> {
    const broker = await KafkaBroker.start()
    const folder = mkdtempSync(join(tmpdir(), 'gantry-nodes-'))
    addModel(folder, 'red', { onnx: redDetector('uint8-nhwc'), config: 'max_batch_size: 4' })
    // Something moves: a picture that stands still is no watching.
    await makeClip(join(folder, 'scene.mp4'), { widthPx: 160, heightPx: 96, fps: 5, seconds: 120 })
    return new TestNodes(broker, folder)
  }

  /** Cameras `cam-1` to `cam-count`, five pictures a second of each. */
  cameras(count: number): readonly Readonly<{ id: string; url: string; sampleFps: number }>[] {
    const url = join(this.folder, 'scene.mp4')
    return Array.from({ length: count }, (_, index) => ({ id: `cam-${index + 1}`, url, sampleFps: 5 }))
  }

  /** @param name - of the node. */
  async add(
    name: string,
    { pipeline = {}, cluster = {}, ...options }: NodeOptions = {},
  ): Promise<TestService> {
    const { id, folder, broker } = this
    const service = await TestService.start({
      ...options,
      pipeline: {
        mediaRoot: folder,
        models: { repository: folder },
        modelServer: { enabled: false },
        ensemble: 'red',
        cluster: {
          ...{ id, node: name, slots },
          topics: { cameras: `${id}.cameras`, cameraErrors: `${id}.errors` },
          ...cluster,
        },
        sinks: {
          kafka: {
            brokers: [broker.address],
            topics: { detections: `${id}.detections`, events: `${id}.events` },
          },
        },
        ...pipeline,
      },
    })
    this.nodes.set(name, service)
    return service
  }

  /** Waits until all cameras are live, and on so many nodes. */
  async spread(asked: TestService, cameras: number, nodes: number): Promise<readonly CameraView[]> {
    return until(
      `${cameras} cameras live on ${nodes} nodes`,
      async () => {
        const { items } = await asked.json<{ items: readonly CameraView[] }>('/api/v1/cameras')
        const isLive = items.length === cameras && items.every(({ status }) => status.state === 'live')
        return isLive && new Set(items.map(({ node }) => node)).size === nodes ? items : undefined
      },
      90_000,
      200,
    )
  }

  /** Ends all nodes, and their folders with them. */
  async clear(): Promise<void> {
    await Promise.all([...this.nodes.values()].map((node) => node[Symbol.asyncDispose]()))
    this.nodes.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.clear()
    await this.broker.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
