import sharp from 'sharp'
import { describe, expect, it, onTestFinished } from 'vitest'
import { cameraSchema } from '../../../src/config/camera.js'
import { toBase64 } from '../../../src/lifecycle/base64.js'
import { closedDetectionsJson } from '../../../src/messages/detections-json.js'
import { detectionsMessageSchema } from '../../../src/messages/detections-message.js'
import type { EngineQuestion } from '../../../src/processes/engine/protocol.js'
import { engineRig } from '../../support/engine-rig.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'

/** With a detector and a camera that pictures are pushed to. */
async function pushed() {
  const repository = tempDir()
  addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
  const started = engineRig([repository], 'red')
  onTestFinished(() => started.engine.stop(1_000))
  await started.engine.start()
  const camera = cameraSchema.parse({ id: 'door', url: 'push:' })
  await started.engine.setCamera({ camera, firstSeq: 1, loopbackClosed: { analysed: false, main: false } })
  const red = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  const push = () =>
    until('a push', () =>
      started.engine.answer({ type: 'pushFrame', cameraId: 'door', image: toBase64(red) }),
    )
  return { ...started, push }
}

describe('a result', () => {
  it('is its final text but for the time of publishing, with beside it what is needed without reading it', async () => {
    const { results, push } = await pushed()
    await push()
    const result = await until('the result', () => results[0])
    const text = closedDetectionsJson(Buffer.from(result.text), 12.5).toString()
    const message = detectionsMessageSchema.parse(JSON.parse(text))
    expect(text).toBe(JSON.stringify(JSON.parse(text)))
    expect(Object.keys(message.timingsMs).at(-1)).toBe('captureToPublish')
    const { queue, infer, postprocess } = message.timingsMs
    expect(result).toMatchObject({
      cameraId: 'door',
      seq: message.seq,
      capturedAtMs: Date.parse(message.capturedAt),
      source: { widthPx: 64, heightPx: 64 },
      model: message.model.name,
      run: { timingsMs: { queue, infer, postprocess }, batchSize: 1 },
      labels: [['red', 1]],
      counts: { received: 1, inferred: 1 },
    })
    expect(message.detections.map(({ label }) => label)).toEqual(['red'])
  })

  it('R38: is not made while control reads none: the frame makes room for a newer one, and pictures are left out before', async () => {
    const { engine: asked, messages, results, out, push } = await pushed()
    asked.showPictures(['*'])
    out.unsentBytes = 2 * 1024 ** 2
    await push()
    expect((await until('a result', () => results[0])).picture).toBeUndefined()
    out.unsentBytes = 17 * 1024 ** 2
    await push()
    out.unsentBytes = 0
    await push()
    expect((await until('the next result', () => results[1])).picture).toBeDefined()
    await asked.removeCamera('door')
    expect(messages.at(-1)).toMatchObject({
      type: 'removed',
      counts: { received: 3, inferred: 2, superseded: 1 },
    })
    expect(results).toHaveLength(2)
  })
})

describe('a fault of its own', () => {
  it('is internal and logged with its stack when a question is not known', async () => {
    const { engine: asked, lines } = engineRig()
    const question = { type: 'riddle' } as unknown as EngineQuestion
    await expect(asked.answer(question)).rejects.toMatchObject({ code: 'GANTRY_INTERNAL' })
    expect(lines).toMatchObject([
      { question: 'riddle', err: { stack: expect.stringContaining('engine.ts') as string } },
    ])
  })

  it('is internal when a camera comes before its detector', async () => {
    const camera = cameraSchema.parse({ id: 'a', url: 'push:' })
    const loopbackClosed = { analysed: false, main: false }
    const set = engineRig().engine.setCamera({ camera, firstSeq: 1, loopbackClosed })
    await expect(set).rejects.toMatchObject({ code: 'GANTRY_INTERNAL' })
  })
})

it('tells who asks for a camera that it does not have so, and logs nothing', async () => {
  const { engine: asked, lines } = engineRig()
  const question = { type: 'snapshot', cameraId: 'a', overlay: false, own: true } as const
  await expect(asked.answer(question)).rejects.toMatchObject({ code: 'GANTRY_CAMERA_NOT_FOUND' })
  expect(lines).toEqual([])
})
