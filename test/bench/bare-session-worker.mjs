// One bare ONNX Runtime session in a worker thread, with the settings of an instance and nothing around it. It tells what opening it and
// its first run took; asked to run for so many ms, it answers what each run took.
import { parentPort, workerData } from 'node:worker_threads'
import ort from 'onnxruntime-node'

const { path, input, shape, type, output, feeds: count, provider, deviceId } = workerData
const openedMs = performance.now()
const session = await ort.InferenceSession.create(path, {
  executionProviders: [
    provider === 'cuda' || provider === 'tensorrt' ? { name: provider, deviceId } : provider,
  ],
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  graphOptimizationLevel: 'all',
  extra: { session: { intra_op: { allow_spinning: '0' } } },
})
const length = shape.reduce((product, size) => product * size, 1)
// As many as there are cameras, and written: a frame that is run again and again, or never written, is in the caches already.
const feeds = Array.from({ length: count }, () => {
  const data = type === 'uint8' ? new Uint8Array(length) : new Float32Array(length)
  return { [input]: new ort.Tensor(type, data.fill(114), shape) }
})
const loadedMs = performance.now()
const first = (await session.run(feeds[0]))[output]
const firstMs = performance.now() - loadedMs
const fetches = { [output]: new ort.Tensor('float32', new Float32Array(first.data.length), first.dims) }

parentPort.on('message', async (message) => {
  if (message.type === 'stop') {
    await session.release()
    parentPort.close()
    return
  }
  const endMs = performance.now() + message.forMs
  const runsMs = []
  for (let beganMs = performance.now(); beganMs < endMs;) {
    await session.run(feeds[runsMs.length % count], fetches)
    const nowMs = performance.now()
    runsMs.push(nowMs - beganMs)
    beganMs = nowMs
  }
  parentPort.postMessage({ runsMs })
})
parentPort.postMessage({ loadMs: loadedMs - openedMs, firstMs })
