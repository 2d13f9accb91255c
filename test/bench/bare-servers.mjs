// HTTP by node:http and gRPC by @grpc/grpc-js with nothing behind: each answers a request with as many bytes as `tiny` gives.
// What a request costs here, no server on these libraries can save.
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { createServer } from 'node:http'

const answer = Buffer.alloc(1024 + 64)

const http = createServer((request, response) => {
  request.resume().once('end', () => response.writeHead(200, { 'content-length': answer.length }).end(answer))
})
const same = (bytes) => bytes
const grpc = new Server()
grpc.addService(
  {
    ModelInfer: {
      path: '/inference.GRPCInferenceService/ModelInfer',
      requestStream: false,
      responseStream: false,
      requestSerialize: same,
      requestDeserialize: same,
      responseSerialize: same,
      responseDeserialize: same,
    },
  },
  { ModelInfer: (_call, done) => done(null, answer) },
)
http.listen(0, '127.0.0.1', () =>
  grpc.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_error, port) =>
    process.send({ http: `127.0.0.1:${http.address().port}`, grpc: `127.0.0.1:${port}` }),
  ),
)
process.on('disconnect', () => process.exit(0))
