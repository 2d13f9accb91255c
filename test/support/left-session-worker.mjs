// Opens a model by the C API, runs it and ends, without a release. `workerData` is the path of the model.
import { workerData } from 'node:worker_threads'
import ort from 'onnxruntime-node'
import { CSession } from '../../dist/backends/onnxruntime/c-api/c-session.js'
import { ortApi } from '../../dist/backends/onnxruntime/c-api/ort-api.js'

const session = CSession.open(ortApi(), {
  model: workerData,
  deviceId: 0,
  prepare: () => undefined,
  runConfig: {},
  memory: undefined,
  replays: false,
})
await session.run({ in: new ort.Tensor('float32', Float32Array.of(1), [1]) }, ['out'])
