import sharp from 'sharp'
import { expect, it } from 'vitest'
import { ensembleStep, pictureEnsemble, redSteps } from '../support/ensemble-text.js'
import { freePort } from '../support/free-port.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const cameras = ['north', 'east', 'south', 'west']
const { letterbox, head } = redSteps

it('four cameras share a detector on another server, lose frames while that is away, and go on when it is back', async () => {
  const there = tempDir()
  addModel(there, 'red', { onnx: redDetector('uint8-nhwc'), config: 'dynamic_batching { }' })
  const grpcPort = await freePort()
  const remote = {
    pipeline: { engines: 0, models: { repository: there }, modelServer: { enabled: true } },
    server: { grpcPort },
  }
  let server = await TestService.start(remote)
  await until('the model there', async () => (await server.fetch('/v2/models/red/ready')).ok, 60_000)
  await using here = await TestService.start({
    pipeline: {
      models: { repository: repositoryFor(`127.0.0.1:${grpcPort}`) },
      ensemble: 'site',
      cameras: cameras.map((id) => ({ id, url: 'push:' })),
    },
  })
  const jpeg = await sharp({ create: { width: 64, height: 64, channels: 3, background: '#cc0000' } })
    .jpeg()
    .toBuffer()
  const push = (camera: string) =>
    here.fetch(`/api/v1/cameras/${camera}/frames`, {
      method: 'POST',
      body: new Uint8Array(jpeg),
      headers: { 'content-type': 'image/jpeg' },
    })
  const labels = async (camera: string) => {
    const { items } = await here.json<{
      items: { seq: number; detections: { label: string }[] }[]
    }>(`/api/v1/detections?camera=${camera}&limit=1`)
    return { seq: items[0]?.seq ?? 0, labels: items[0]?.detections.map(({ label }) => label) }
  }
  try {
    for (const camera of cameras) {
      await until(`a result of ${camera}`, async () => {
        await push(camera)
        return (await labels(camera)).labels?.includes('red')
      })
    }
    await until('frames of several cameras in one request', async () => {
      await Promise.all(cameras.map(push))
      return (
        (await counted(server, 'nv_inference_request_success')) <
        (await counted(server, 'nv_inference_count'))
      )
    })
    await server.end()
    const before = await shed(here)
    await until('frames shed', async () => {
      await Promise.all(cameras.map(push))
      return (await shed(here)) >= before + cameras.length
    })
    server = await TestService.start({ ...remote, like: server })
    await until('the model there', async () => (await server.fetch('/v2/models/red/ready')).ok, 60_000)
    const backMs = performance.now()
    const last = new Map(await Promise.all(cameras.map(async (id) => [id, (await labels(id)).seq] as const)))
    for (const camera of cameras)
      await until(`a new result of ${camera}`, async () => {
        await push(camera)
        return (await labels(camera)).seq > (last.get(camera) ?? 0)
      })
    expect(performance.now() - backMs).toBeLessThan(5_000)
  } finally {
    await server[Symbol.asyncDispose]()
  }
}, 120_000)

/** The ensemble `site`, whose detector runs at that address. */
function repositoryFor(address: string): string {
  const repository = tempDir()
  addModel(repository, 'red', {
    config: `backend: "kserve"
      max_batch_size: 4
      dynamic_batching { max_queue_delay_microseconds: 100000 }
      parameters { key: "gantry.kserve_addresses" value { string_value: "${address}" } }
      output { name: "output0" data_type: TYPE_FP32 dims: [ 6, 84 ] label_filename: "labels.txt" }
      input { name: "images" data_type: TYPE_UINT8 dims: [ 64, 64, 3 ] }`,
    labels: 'blue\nred\n',
  })
  const detect = ensembleStep('red', { images: 'pixels' }, { output0: 'head' })
  addModel(repository, 'site', { config: pictureEnsemble({ steps: [letterbox, detect, head] }) })
  return repository
}

async function counted(service: TestService, family: string): Promise<number> {
  const [, count] =
    new RegExp(`^${family}\\{model="red"[^}]*\\} (\\d+)`, 'm').exec(await service.metrics()) ?? []
  return Number(count ?? 0)
}

/** Frames of all cameras that were shed for want of boxes. */
async function shed(service: TestService): Promise<number> {
  const series = (await service.metrics()).matchAll(
    /^gantry_frames_total\{[^}]*cause="inference_failed"[^}]*\} (\d+)/gm,
  )
  return [...series].reduce((sum, [, count]) => sum + Number(count), 0)
}
