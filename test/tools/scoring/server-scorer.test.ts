import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startGrpc } from '../../../src/api/grpc/grpc-server.js'
import { createKserveApp } from '../../../src/api/kserve/kserve-app.js'
import { inferenceSchema } from '../../../src/config/inference.js'
import { openClient } from '../../../src/tools/client/open-client.js'
import type { Picture } from '../../../src/tools/scoring/picture-scorer.js'
import { openRepositoryScorer } from '../../../src/tools/scoring/repository-scorer.js'
import { openServerScorer } from '../../../src/tools/scoring/server-scorer.js'
import { addModel, constantOnnx } from '../../support/onnx-models.js'
import { serveRepository } from '../../support/real-repository.js'
import { redPicture, redRepository } from '../../support/red-pictures.js'
import { silentLog } from '../../support/silent-log.js'

const limits = { scoreThreshold: 0.1, iouThreshold: 0.5, maxDetections: 300 }
const labels = ['blue', 'red']

/** An ensemble of letterbox, `red` and head, behind what brings the picture. */
function ensemble(input: string, decode: string, image: string): string {
  return `platform: "ensemble" ${input}
    output { name: "detections" data_type: TYPE_FP32 dims: [ -1, 6 ] }
    ensemble_scheduling { ${decode}
      step { model_name: "letterbox" model_version: -1 input_map { key: "image" value: "${image}" }
        output_map { key: "pixels" value: "letterboxed" } output_map { key: "geometry" value: "geometry" } }
      step { model_name: "red" model_version: -1 input_map { key: "images" value: "letterboxed" }
        output_map { key: "output0" value: "head" } }
      step { model_name: "detection_head" model_version: -1 input_map { key: "output0" value: "head" }
        input_map { key: "geometry" value: "geometry" } output_map { key: "detections" value: "detections" } } }`
}

const decodeStep =
  'step { model_name: "image_decode" model_version: -1 input_map { key: "image" value: "file" } output_map { key: "pixels" value: "image" } }'

async function served() {
  const dir = redRepository()
  const pixels = 'input { name: "image" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }'
  addModel(dir, 'pixels', { config: ensemble(pixels, '', 'image') })
  const strings = 'input { name: "file" data_type: TYPE_STRING dims: [ 1 ] }'
  addModel(dir, 'strings', { config: ensemble(strings, decodeStep, 'image') })
  const numbers = constantOnnx(
    [{ name: 'x', type: 'float32', shape: [1, 4] }],
    [{ name: 'y', shape: [1, 4], data: new Float32Array(4) }],
  )
  addModel(dir, 'numbers', { onnx: numbers })
  const rows = [8, 8, 32, 32, 4.5, 1, 8, 8, 32, 32, 0.875, 1, 8, 8, Number.NaN, 32, 0.875, 1]
  const strange = constantOnnx(
    [{ name: 'image', type: 'uint8', shape: ['h', 'w', 3] }],
    [{ name: 'detections', shape: [3, 6], data: Float32Array.from(rows) }],
  )
  addModel(dir, 'strange', { onnx: strange })
  const server = await serveRepository(dir)
  const app = createKserveApp(server, { maxBodyBytes: 64_000_000, log: silentLog() })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const grpc = await startGrpc(server, { host: '127.0.0.1', port: 0, log: silentLog() })
  const stop = async () => {
    app.server.closeAllConnections()
    await Promise.all([app.close(), grpc.stop(0)])
  }
  onTestFinished(stop)
  const { port } = app.server.address() as AddressInfo
  return { dir, stop, http: `http://127.0.0.1:${port}`, grpc: `grpc://127.0.0.1:${grpc.port}` }
}

async function scorerOf(url: string, name: string, given = labels) {
  const client = await openClient(url)
  const scorer = await openServerScorer({ client, model: { name }, labels: given, limits, atOnce: 2 })
  onTestFinished(() => scorer.stop(0))
  return scorer
}

describe('a running server', () => {
  it('answers as the repository does, whatever its model takes, by HTTP and gRPC', async () => {
    const { dir, http, grpc } = await served()
    const inference = inferenceSchema.parse({ providers: ['cpu'] })
    const own = await openRepositoryScorer({
      repositories: dir,
      model: 'red',
      inference,
      limits,
      log: silentLog(),
    })
    onTestFinished(() => own.stop(0))
    const bytes = await redPicture({ widthPx: 200, heightPx: 100 }, 204)
    const rgbHwc = new Uint8Array(200 * 100 * 3).map((_, at) => (at % 3 === 0 ? 204 : 0))
    const pictures: readonly Picture[] = [
      { kind: 'file', bytes },
      { kind: 'pixels', widthPx: 200, heightPx: 100, rgbHwc },
    ]
    for (const url of [http, grpc])
      for (const name of ['red', 'pixels', 'strings']) {
        const scorer = await scorerOf(url, name)
        expect(scorer.info).toMatchObject({ name: `${name}:1`, labels, where: url })
        for (const picture of pictures) {
          const [ours, theirs] = await Promise.all([own.score(picture), scorer.score(picture)])
          expect(theirs.size).toEqual({ widthPx: 200, heightPx: 100 })
          expect(ours.detections).toHaveLength(1)
          expect(theirs.detections).toEqual(ours.detections)
        }
      }
  })

  it('R67: gives no box whose score or place is none, and tells it once', async () => {
    const { http } = await served()
    const client = await openClient(http)
    const told: string[] = []
    const warn = (text: string) => void told.push(text)
    const scorer = await openServerScorer({
      client,
      model: { name: 'strange' },
      labels,
      limits,
      atOnce: 1,
      warn,
    })
    onTestFinished(() => scorer.stop(0))
    const picture: Picture = {
      kind: 'pixels',
      widthPx: 64,
      heightPx: 64,
      rgbHwc: new Uint8Array(64 * 64 * 3),
    }
    for (let times = 0; times < 2; times++)
      expect((await scorer.score(picture)).detections).toEqual([
        { label: 'red', score: 0.875, boxPx: { x1: 8, y1: 8, x2: 32, y2: 32 } },
      ])
    expect(told).toEqual([expect.stringContaining('model "strange" gives scores from 0 to 4.5') as string])
  })

  it('says what it cannot be asked for', async () => {
    const { http } = await served()
    await expect(scorerOf(http, 'none')).rejects.toMatchObject({ code: 'GANTRY_MODEL_NOT_FOUND' })
    await expect(scorerOf(http, 'pixels', [])).rejects.toThrow(
      /names of the classes of "pixels" are not known/,
    )
    await expect(scorerOf(http, 'numbers')).rejects.toThrow(/input "x" .* is not an image/)
  })

  it('refuses what is no picture without asking, and goes on', async () => {
    const { http } = await served()
    const bytes = await redPicture({ widthPx: 64, heightPx: 64 }, 255)
    for (const name of ['red', 'pixels', 'strings']) {
      const scorer = await scorerOf(http, name)
      await expect(scorer.score({ kind: 'file', bytes: Buffer.from('no') })).rejects.toMatchObject({
        code: 'GANTRY_IMAGE_INVALID',
      })
      expect((await scorer.score({ kind: 'file', bytes })).detections).toHaveLength(1)
    }
  })

  it('says that it is gone', async () => {
    const { http, grpc, stop } = await served()
    const scorers = [await scorerOf(http, 'pixels'), await scorerOf(grpc, 'pixels')]
    const bytes = await redPicture({ widthPx: 64, heightPx: 64 }, 255)
    for (const scorer of scorers) await scorer.score({ kind: 'file', bytes })
    await stop()
    for (const scorer of scorers)
      await expect(scorer.score({ kind: 'file', bytes })).rejects.toMatchObject({
        code: 'GANTRY_SERVER_UNREACHABLE',
      })
    await expect(scorerOf(http, 'pixels')).rejects.toMatchObject({ code: 'GANTRY_SERVER_UNREACHABLE' })
  })
})
