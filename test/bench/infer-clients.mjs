// One client that asks `tiny` for inference, again as soon as it is answered. Prints its latencies as JSON: p10, p50, p95, p99 in us, and n.
//
//     node infer-clients.mjs http|json|grpc HOST:PORT SECONDS [kilobyte|picture|floats]
//
// HTTP is bytes on a socket, so that the client costs next to nothing, with the tensor in binary or in its JSON; gRPC is @grpc/grpc-js.
import { Client, credentials } from '@grpc/grpc-js'
import { connect } from 'node:net'

const [protocol, address, seconds, input = 'kilobyte'] = process.argv.slice(2)
const { datatype, tensor } = {
  kilobyte: { datatype: 'FP32', tensor: new Float32Array(256) },
  picture: { datatype: 'UINT8', tensor: new Uint8Array(184_320).fill(114) },
  floats: { datatype: 'FP32', tensor: Float32Array.from({ length: 184_320 }, () => Math.random() - 0.5) },
}[input]
const tensorBytes = Buffer.from(tensor.buffer)

const latenciesUs = []
const ask = protocol === 'grpc' ? grpcClient() : httpClient()
await repeat(Number(seconds) / 3)
latenciesUs.length = 0
await repeat(Number(seconds))
latenciesUs.sort((a, b) => a - b)
const quantile = (q) => latenciesUs[Math.floor(q * latenciesUs.length)]
process.stdout.write(
  JSON.stringify({
    p50: quantile(0.5),
    p10: quantile(0.1),
    p95: quantile(0.95),
    p99: quantile(0.99),
    n: latenciesUs.length,
  }),
  () => process.exit(0),
)

async function repeat(forSeconds) {
  const endMs = performance.now() + forSeconds * 1_000
  for (;;) {
    const sentMs = performance.now()
    if (sentMs > endMs) return
    await ask()
    latenciesUs.push((performance.now() - sentMs) * 1_000)
  }
}

function httpClient() {
  const [host, port] = address.split(':')
  const binary = protocol === 'http'
  const x0 = { name: 'x0', datatype, shape: [tensor.length] }
  const json = JSON.stringify(
    binary
      ? {
          inputs: [{ ...x0, parameters: { binary_data_size: tensorBytes.length } }],
          parameters: { binary_data_output: true },
        }
      : { inputs: [{ ...x0, data: [...tensor] }] },
  )
  const head = [
    'POST /v2/models/tiny/infer HTTP/1.1',
    `Host: ${address}`,
    ...(binary
      ? ['Content-Type: application/octet-stream', `Inference-Header-Content-Length: ${json.length}`]
      : ['Content-Type: application/json']),
    `Content-Length: ${json.length + (binary ? tensorBytes.length : 0)}`,
  ]
  const text = Buffer.from(`${head.join('\r\n')}\r\n\r\n${json}`)
  const request = binary ? Buffer.concat([text, tensorBytes]) : text
  const socket = connect(Number(port), host).setNoDelay()
  let answered = () => undefined
  let received = Buffer.alloc(0)
  let wholeBytes
  socket.on('data', (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    wholeBytes ??= lengthOf(received)
    if (wholeBytes === undefined || received.length < wholeBytes) return
    received = Buffer.alloc(0)
    wholeBytes = undefined
    answered()
  })
  return () =>
    new Promise((resolve) => {
      answered = resolve
      socket.write(request)
    })
}

/** Bytes of the whole answer, once its head is there. */
function lengthOf(received) {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = received.toString('latin1', 0, end)
  if (!head.startsWith('HTTP/1.1 200')) throw new Error(head)
  return end + 4 + Number(/content-length: (\d+)/i.exec(head)[1])
}

function grpcClient() {
  const client = new Client(address, credentials.createInsecure())
  const request = Buffer.concat([
    field(1, Buffer.from('tiny')),
    field(
      5,
      Buffer.concat([
        field(1, Buffer.from('x0')),
        field(2, Buffer.from(datatype)),
        field(3, varint(tensor.length)),
      ]),
    ),
    field(7, tensorBytes),
  ])
  const same = (bytes) => bytes
  return () =>
    new Promise((resolve, reject) => {
      const path = '/inference.GRPCInferenceService/ModelInfer'
      client.makeUnaryRequest(path, same, same, request, (error) => (error ? reject(error) : resolve()))
    })
}

/** A length-delimited field of protobuf. */
function field(number, bytes) {
  return Buffer.concat([Buffer.of(number * 8 + 2), varint(bytes.length), bytes])
}

function varint(value) {
  const bytes = []
  for (let rest = value; ; rest >>= 7) {
    if (rest < 128) return Buffer.from([...bytes, rest])
    bytes.push((rest & 127) | 128)
  }
}
