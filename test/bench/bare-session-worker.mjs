// One bare ONNX Runtime session in a worker thread, with the settings of an instance and nothing around it.
import { parentPort, workerData } from 'node:worker_threads'
import ort from 'onnxruntime-node'

const { path, input, shape, type, output } = workerData
const session = await ort.InferenceSession.create(path, {
  executionProviders: ['cpu'],
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  graphOptimizationLevel: 'all',
  extra: { session: { intra_op: { allow_spinning: '0' } } },
})
const length = shape.reduce((product, size) => product * size, 1)
const feeds = {
  [input]: new ort.Tensor(type, type === 'uint8' ? new Uint8Array(length) : new Float32Array(length), shape),
}
const first = (await session.run(feeds))[output]
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
    await session.run(feeds, fetches)
    runs += 1
  }
  parentPort.postMessage({ runs })
})
parentPort.postMessage({ runs: 0 })
