// Runs one frame through a detector in a process of its own, and prints what came of it as one JSON line.
// usage: node webgpu-child.mjs REPOSITORY MODEL PROVIDERS
import { createCameraDetector } from '../../dist/ensemble/create-camera-detector.js'
import { inferenceSchema } from '../../dist/config/inference.js'

const [repositoryDir, ensemble, providers] = process.argv.slice(2)
const log = { info() {}, warn() {} }
const frames = 3
const results = []
let allEnded
const ended = new Promise((resolve) => (allEnded = resolve))
const told = (result) => {
  results.push(result)
  if (results.length === frames) allEnded()
}
const detector = await createCameraDetector({
  repositories: repositoryDir,
  ensemble,
  inference: inferenceSchema.parse({ providers: providers.split(','), instances: 1, maxBatchSize: 4 }),
  log,
  listener: {
    detected: (frame, result) => told({ cameraId: frame.cameraId, detections: result.detections }),
    superseded: () => told({ superseded: true }),
    shed: (frame, cause, error) => told({ cause, error: String(error) }),
    instanceExited: (error) => told({ error: String(error) }),
  },
})
const size = detector.info.format.input
for (let n = 0; n < frames; n++) {
  const pixels = new Uint8Array(size.widthPx * size.heightPx * 3)
  for (let at = 0; at < pixels.length; at += 3) pixels[at] = 255 - n * 51
  detector.offer({
    cameraId: `cam-${n}`,
    seq: 1,
    capturedAtMs: Date.now(),
    arrivedMs: 0,
    ptsMs: 0,
    quality: 'ok',
    source: size,
    regionPx: { x: 0, y: 0, ...size },
    letterbox: { scale: 1, padXPx: 0, padYPx: 0 },
    rgbHwc: pixels.buffer,
  })
}
await ended
await detector.stop(5_000)
process.stdout.write(`${JSON.stringify({ info: detector.info, results })}\n`)
