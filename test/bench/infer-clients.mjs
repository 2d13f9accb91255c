// Clients that ask `tiny` for inference, again as soon as they are answered. Prints their latencies as JSON: p10, p50, p95, p99 in us, and n.
//
//     node infer-clients.mjs http|json|grpc HOST:PORT[,HOST:PORT...] SECONDS [kilobyte|picture|floats] [clients]
//
// Several servers have turns of half a second, until each has had its seconds; what is printed is a list then, in their order.
//
// In the place of the input another model can be named, by `{"model", "input", "shape"}` for one that takes UINT8. HTTP is bytes on a
// socket, so that the client costs next to nothing, with the tensor in binary or in its JSON; gRPC is @grpc/grpc-js. Where there are
// several of these processes: `allUs` has every latency, `tookMs` what they took together.
import { Client, credentials } from '@grpc/grpc-js'
import { connect } from 'node:net'

const [protocol, addresses, seconds, input = 'kilobyte', clients = '1'] = process.argv.slice(2)
const isOther = input.startsWith('{')
const { model, name, datatype, shape, tensor } = isOther ? otherModel(JSON.parse(input)) : tinyModel(input)
const tensorBytes = Buffer.from(tensor.buffer)

const clientOf = protocol === 'grpc' ? grpcClient : httpClient
const servers = addresses.split(',').map((address) => ({
  asks: Array.from({ length: Number(clients) }, () => clientOf(address)),
  latenciesUs: [],
}))
await repeat(Number(seconds) / 3)
for (const server of servers) server.latenciesUs = []
const beganMs = performance.now()
await repeat(Number(seconds))
const tookMs = performance.now() - beganMs
const figures = servers.map(figuresOf)
process.stdout.write(JSON.stringify(figures.length === 1 ? figures[0] : figures), () => process.exit(0))

function figuresOf({ latenciesUs }) {
  latenciesUs.sort((a, b) => a - b)
  const quantile = (q) => latenciesUs[Math.floor(q * latenciesUs.length)]
  return {
    p50: quantile(0.5),
    p10: quantile(0.1),
    p95: quantile(0.95),
    p99: quantile(0.99),
    n: latenciesUs.length,
    ...(isOther && { allUs: latenciesUs.map(Math.round), tookMs }),
  }
}

function tinyModel(kind) {
  const { datatype, tensor } = {
    kilobyte: { datatype: 'FP32', tensor: new Float32Array(256) },
    picture: { datatype: 'UINT8', tensor: new Uint8Array(184_320).fill(114) },
    floats: { datatype: 'FP32', tensor: Float32Array.from({ length: 184_320 }, () => Math.random() - 0.5) },
  }[kind]
  return { model: 'tiny', name: 'x0', datatype, shape: [tensor.length], tensor }
}

function otherModel({ model, input, shape }) {
  const tensor = new Uint8Array(shape.reduce((product, size) => product * size, 1)).fill(114)
  return { model, name: input, datatype: 'UINT8', shape, tensor }
}

/** One server has all the time; several have turns: one, the other, the other, one. */
async function repeat(forSeconds) {
  const turnSeconds = servers.length === 1 ? forSeconds : 0.5
  for (let turn = 0; turn * turnSeconds < forSeconds; turn += 1)
    for (const { asks, latenciesUs } of turn % 2 === 0 ? servers : servers.toReversed()) {
      const endMs = performance.now() + turnSeconds * 1_000
      await Promise.all(asks.map((ask) => repeatUntil(endMs, ask, latenciesUs)))
    }
}

async function repeatUntil(endMs, ask, latenciesUs) {
  for (;;) {
    const sentMs = performance.now()
    if (sentMs > endMs) return
    await ask()
    latenciesUs.push((performance.now() - sentMs) * 1_000)
  }
}

function httpClient(address) {
  const [host, port] = address.split(':')
  const binary = protocol === 'http'
  const described = { name, datatype, shape }
  const json = JSON.stringify(
    binary
      ? {
          inputs: [{ ...described, parameters: { binary_data_size: tensorBytes.length } }],
          parameters: { binary_data_output: true },
        }
      : { inputs: [{ ...described, data: [...tensor] }] },
  )
  const lines = [
    `POST /v2/models/${model}/infer HTTP/1.1`,
    `Host: ${address}`,
    ...(binary
      ? ['Content-Type: application/octet-stream', `Inference-Header-Content-Length: ${json.length}`]
      : ['Content-Type: application/json']),
    `Content-Length: ${json.length + (binary ? tensorBytes.length : 0)}`,
  ]
  const text = Buffer.from(`${lines.join('\r\n')}\r\n\r\n${json}`)
  const request = binary ? Buffer.concat([text, tensorBytes]) : text
  const socket = connect(Number(port), host).setNoDelay()
  let answered = () => undefined
  let head = Buffer.alloc(0)
  let receivedBytes = 0
  let wholeBytes
  socket.on('data', (chunk) => {
    receivedBytes += chunk.length
    if (wholeBytes === undefined) {
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk])
      wholeBytes = lengthOf(head)
    }
    if (wholeBytes === undefined || receivedBytes < wholeBytes) return
    head = Buffer.alloc(0)
    receivedBytes = 0
    wholeBytes = undefined
    answered()
  })
  return () =>
    new Promise((resolve) => {
      answered = resolve
      socket.write(request)
    })
}

/** Bytes of the whole answer, once its head is there; `Inference-Header-Content-Length` is not that of the body. */
function lengthOf(received) {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = received.toString('latin1', 0, end)
  if (!head.startsWith('HTTP/1.1 200')) throw new Error(head)
  return end + 4 + Number(/^content-length: (\d+)/im.exec(head)[1])
}

function grpcClient(address) {
  // A connection each, as clients in processes of their own have.
  const client = new Client(address, credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.max_receive_message_length': -1,
  })
  const request = Buffer.concat([
    field(1, Buffer.from(model)),
    field(
      5,
      Buffer.concat([
        field(1, Buffer.from(name)),
        field(2, Buffer.from(datatype)),
        field(3, Buffer.concat(shape.map(varint))),
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
