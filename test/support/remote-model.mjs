// A worker thread with a gRPC server that answers `ModelInfer` with bytes that are ready: `workerData.answers`, by the model that is asked for.
// Its first message is its port. `workerData.options` are channel options.
import { Server, ServerCredentials, status } from '@grpc/grpc-js'
import { parentPort, workerData } from 'node:worker_threads'

const { answers, options } = workerData
const same = (bytes) => bytes
const server = new Server({
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
  ...options,
})
const modelInfer = {
  path: '/inference.GRPCInferenceService/ModelInfer',
  requestStream: false,
  responseStream: false,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
}
server.addService(
  { modelInfer },
  {
    modelInfer({ request }, answer) {
      // The first field is the name of the model.
      const answered = answers[request.toString('latin1', 2, 2 + request[1])]
      if (answered === undefined) answer({ code: status.NOT_FOUND, details: 'unknown model' })
      else answer(null, Buffer.from(answered.buffer, answered.byteOffset, answered.byteLength))
    },
  },
)
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error
  parentPort.postMessage(port)
})
