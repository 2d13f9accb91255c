// One bare ONNX Runtime session in a worker thread, with the settings of an instance and nothing around it.
import { parentPort, workerData } from 'node:worker_threads'
import ort from 'onnxruntime-node'

const { path, input, shape, type, output, frames } = workerData
const session = await ort.InferenceSession.create(path, {
  executionProviders: ['cpu'],
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  graphOptimizationLevel: 'all',
  extra: { session: { intra_op: { allow_spinning: '0' } } },
})
const length = shape.reduce((product, size) => product * size, 1)
// As many as there are cameras, and written: a frame that is run again and again, or never written, is in the caches already.
const feeds = Array.from({ length: frames }, () => {
  const data = type === 'uint8' ? new Uint8Array(length) : new Float32Array(length)
  return { [input]: new ort.Tensor(type, data.fill(114), shape) }
})
const first = (await session.run(feeds[0]))[output]
const fetches = { [output]: new ort.Tensor('float32', new Float32Array(first.data.length), first.dims) }

parentPort.on('message', async (message) => {
  if (message.type === 'stop') {
    await session.release()
    parentPort.close()
    return
  }
  const endMs = performance.now() + message.forMs
  let runs = 0
  while (performance.now() < endMs) {
    await session.run(feeds[runs % frames], fetches)
    runs += 1
  }
  parentPort.postMessage({ runs })
})
parentPort.postMessage({ runs: 0 })
