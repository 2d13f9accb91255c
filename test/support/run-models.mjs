// `node run-models.mjs JOBS.json`: runs models from dist/ as the workers open them, for tests that start it on a processor of their
// choice (`qemu-x86_64 -cpu ...`). A job names a model, its session options, and a raw file for its one input; what the first output
// holds goes into a file as float32. A camera job names a model of a repository and runs its detector on a picture of zeros.
import { readFileSync, writeFileSync } from 'node:fs'
import ort from 'onnxruntime-node'
import { inferenceSchema } from '../../dist/config/inference.js'
import { createCameraDetector } from '../../dist/ensemble/create-camera-detector.js'
import { openOrtSession } from '../../dist/backends/onnxruntime/ort-session.js'

const arrays = { float32: Float32Array, uint8: Uint8Array, int8: Int8Array }

async function runModel({ model, sessionConfig, input, output }) {
  const { session } = await openOrtSession({
    path: model,
    providers: ['cpu'],
    deviceId: 0,
    intraOpThreads: 1,
    graphOptimization: 'all',
    sessionConfig,
  })
  const { buffer, byteOffset, byteLength } = readFileSync(input.file)
  const data = new arrays[input.type](buffer.slice(byteOffset, byteOffset + byteLength))
  const results = await session.run({
    [session.inputNames[0]]: new ort.Tensor(input.type, data, input.shape),
  })
  writeFileSync(
    output,
    new Uint8Array(Float32Array.from(results[session.outputNames[0]].data, Number).buffer),
  )
  await session.release()
}

async function runCamera({ repository, model, output }) {
  const { promise, resolve, reject } = Promise.withResolvers()
  const nothing = () => undefined
  const detector = await createCameraDetector({
    repositories: repository,
    ensemble: model,
    inference: inferenceSchema.parse({ providers: ['cpu'], instances: 1, scoreThreshold: 0.01 }),
    log: { info: nothing, warn: nothing, error: nothing, debug: nothing, child: nothing },
    listener: {
      detected: (_, { detections }) => resolve(detections),
      superseded: reject,
      shed: (_, __, error) => reject(error),
      instanceExited: reject,
      hung: reject,
    },
  })
  const { widthPx, heightPx } = detector.info.format.input
  const whole = { x: 0, y: 0, widthPx, heightPx }
  detector.offer({
    cameraId: 'cam',
    seq: 1,
    capturedAtMs: Date.now(),
    arrivedMs: 0,
    ptsMs: 0,
    quality: 'ok',
    source: { widthPx, heightPx },
    regionPx: whole,
    letterbox: { scale: 1, padXPx: 0, padYPx: 0 },
    rgbHwc: new ArrayBuffer(widthPx * heightPx * 3),
  })
  writeFileSync(output, JSON.stringify(await promise))
  await detector.stop(1000)
}

const { models, cameras } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
for (const job of models) await runModel(job)
for (const job of cameras) await runCamera(job)
