import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import type { DetectionsMessage } from '../../src/messages/detections-message.js'
import { clipFrame } from '../support/clip-frame.js'
import { ensembleStep, pictureEnsemble } from '../support/ensemble-text.js'
import { addFreePpeDetector } from '../support/free-size-models.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'
import { makeClip } from '../support/video-clips.js'

const yard = fileURLToPath(new URL('../../pipelines/demo/clips/yard.mp4', import.meta.url))
const size = { widthPx: 1280, heightPx: 720 }

type Detector = Readonly<{ input: { widthPx: number; heightPx: number }; inputFrom: string }>
type Ready = Readonly<{ engines: readonly Readonly<{ detector: Detector }>[] }>

async function detectors(service: TestService): Promise<readonly Detector[]> {
  const { engines } = await service.json<Ready>('/readyz')
  return engines.map(({ detector: { input, inputFrom } }) => ({ input, inputFrom }))
}

/** A free detector alone, and behind a letterbox that also gives its picture. */
function repository(): string {
  const dir = tempDir()
  addFreePpeDetector(dir, 'free')
  mkdirSync(join(dir, 'site/1'), { recursive: true })
  const steps = [
    ensembleStep('letterbox', { image: 'image' }, { pixels: 'pixels', geometry: 'geometry', frame: 'seen' }),
    ensembleStep('free', { images: 'pixels' }, { output0: 'head' }),
    ensembleStep('detection_head', { output0: 'head', geometry: 'geometry' }, { detections: 'detections' }),
  ]
  const outputs = 'output { name: "seen" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }'
  writeFileSync(join(dir, 'site/config.pbtxt'), pictureEnsemble({ steps, outputs }))
  return dir
}

describe('a model with gantry.input_size "rect"', () => {
  it('runs at the shape of the cameras of the start, in every engine, and later ones do not change it', async () => {
    const dir = tempDir()
    await makeClip(join(dir, 'old.mp4'), { widthPx: 320, heightPx: 240 })
    const cameras = ['a', 'b'].map((id) => ({ id, url: 'old.mp4' }))
    await using service = await TestService.start({
      pipeline: {
        mediaRoot: dir,
        ensemble: 'free',
        engines: 2,
        models: { repository: repository() },
        cameras,
      },
    })
    const asOld = { input: { widthPx: 416, heightPx: 320 }, inputFrom: 'the shape of 2 of 2 cameras' }
    expect(await detectors(service)).toEqual([asOld, asOld])

    await service.send('POST', '/api/v1/cameras', { id: 'pushed', url: 'push:' })
    const { engines } = await service.json<{ engines: { pid: number }[] }>('/readyz')
    process.kill(engines[0]!.pid, 'SIGKILL')
    await until(
      'the engine is back',
      async () => {
        const now = await service
          .json<{ engines: { pid: number; state: string }[] }>('/readyz')
          .catch(() => undefined)
        return now?.engines.every(({ pid, state }) => state === 'ready' && pid !== engines[0]!.pid)
      },
      30_000,
    )
    expect(await detectors(service)).toEqual([asOld, asOld])
  }, 60_000)

  it('gives a client the boxes that a camera gets of the same picture', async () => {
    await using service = await TestService.start({
      pipeline: {
        ensemble: 'site',
        models: { repository: repository() },
        modelServer: { enabled: true },
        cameras: [{ id: 'a', url: 'push:' }],
      },
    })
    const usual = 'the usual 16:9, as no camera has told its shape'
    expect(await detectors(service)).toEqual([{ input: { widthPx: 416, heightPx: 256 }, inputFrom: usual }])
    await until('models ready', async () => (await service.fetch('/v2/health/ready')).ok, 30_000)

    const rgb = new Uint8Array(clipFrame(yard, 30, size, { input: size, align: 'center' }))
    const raw = { width: size.widthPx, height: size.heightPx, channels: 3 as const }
    const body = await sharp(rgb, { raw }).png().toBuffer()
    const push = { method: 'POST', headers: { 'content-type': 'image/png' }, body }
    await until('the push', async () => (await service.fetch('/api/v1/cameras/a/frames', push)).ok)
    const { detections } = await until('the result', async () => {
      const response = await service.fetch('/api/v1/cameras/a/latest')
      return response.ok ? ((await response.json()) as DetectionsMessage) : undefined
    })

    const image = {
      name: 'image',
      datatype: 'UINT8',
      shape: [size.heightPx, size.widthPx, 3],
      parameters: { binary_data_size: rgb.byteLength },
    }
    const header = Buffer.from(JSON.stringify({ inputs: [image] }))
    const answer = await service.json<{ outputs: { name: string; shape: number[]; data: number[] }[] }>(
      '/v2/models/site/infer',
      {
        method: 'POST',
        headers: { 'inference-header-content-length': String(header.byteLength) },
        body: Buffer.concat([header, rgb]),
      },
    )
    const output = (name: string) => answer.outputs.find((each) => each.name === name)!
    expect(output('seen').shape).toEqual([256, 416, 3])
    const { data } = output('detections')
    const ofClient = Array.from({ length: data.length / 6 }, (_, row) => data.slice(row * 6, row * 6 + 5))
    const ofCamera = detections.map(({ boxPx: { x1, y1, x2, y2 }, score }) => [x1, y1, x2, y2, score])
    expect(ofCamera.length).toBeGreaterThan(3)
    expect(ofClient).toHaveLength(ofCamera.length)
    const best = (rows: number[][]) => rows.toSorted((a, b) => b[4]! - a[4]!)
    best(ofCamera).forEach((row, index) =>
      row.forEach((value, at) => expect(value).toBeCloseTo(best(ofClient)[index]![at]!, at === 4 ? 1 : 0)),
    )
  }, 60_000)
})
