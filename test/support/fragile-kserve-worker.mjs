// The thread of a remote model, but for requests whose first number is 201: it ends without a word, with all its requests.
import { parentPort } from 'node:worker_threads'

const deadly = 201

parentPort.on('message', ({ type, given }) => {
  if (type !== 'call') return
  const { buffer, byteOffset } = given.inputs[0].data
  if (new DataView(buffer, byteOffset).getFloat32(0, true) === deadly) process.exit(7)
})
await import('../../dist/backends/kserve/kserve-worker.js')
