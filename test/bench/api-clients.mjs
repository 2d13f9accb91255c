// Clients that ask ppe_detect for inference, each again as soon as it is answered.
import { Agent, request } from 'node:http'
import { standAside } from './stand-aside.mjs'

const [port, clients] = process.argv.slice(2).map(Number)
standAside()

const pixels = 416 * 416 * 3
const head = Buffer.from(
  JSON.stringify({
    inputs: [
      {
        name: 'images',
        datatype: 'UINT8',
        shape: [1, 416, 416, 3],
        parameters: { binary_data_size: pixels },
      },
    ],
    parameters: { binary_data_output: true },
  }),
)
const body = Buffer.concat([head, Buffer.alloc(pixels, 114)])
const agent = new Agent({ keepAlive: true, maxSockets: clients })
const headers = {
  'content-type': 'application/octet-stream',
  'content-length': body.length,
  'inference-header-content-length': head.length,
}

let requests = 0
let stopping = false

function ask() {
  return new Promise((resolve, reject) => {
    const path = '/v2/models/ppe_detect/infer'
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`answered ${answer.statusCode}`))
      answer.resume().on('end', resolve).on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

async function client() {
  while (!stopping) {
    await ask()
    requests += 1
  }
}

process.on('message', () => (stopping = true))
await ask()
process.send('asking')
await Promise.all(Array.from({ length: clients }, client))
process.send({ requests }, () => process.exit(0))
