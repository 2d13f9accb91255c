// What answers at the end of each way of tls-overhead.bench.ts, on the HTTP server of Node that serves models: it reads a body and answers
// with one. By IPC: its ports. With a path as argument it relays by TLS to a socket there, as control would.
//
//     node tls-servers.mjs CERT KEY DOOR_SOCKET RELAY_SOCKET [relay]
import { readFileSync } from 'node:fs'
import { Agent, createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { expectPeers } from '../../dist/api/behind-door.js'
import { relay } from '../../dist/api/relay.js'

const [certFile, keyFile, doorSocket, relaySocket, role] = process.argv.slice(2)
const tls = {
  cert: readFileSync(certFile),
  key: readFileSync(keyFile),
  ALPNProtocols: ['http/1.1'],
  keepAliveTimeout: 60_000,
}
const answer = Buffer.alloc(1_024)

function answered(request, response) {
  request.resume().once('end', () => {
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': answer.length })
    response.end(answer)
  })
}

const agent = new Agent({ keepAlive: true, maxFreeSockets: 256, scheduling: 'lifo' })
function relayed(request, response) {
  relay(request, response, { socketPath: relaySocket, agent, failed: () => response.destroy() })
}

async function listening(server, where) {
  await new Promise((resolve) => server.listen(where, resolve))
  return server.address().port
}

if (role === 'relay') {
  process.send({ relayed: await listening(createTlsServer(tls, relayed), { port: 0, host: '127.0.0.1' }) })
} else {
  const behind = createServer({ keepAliveTimeout: 60_000 }, answered)
  expectPeers(behind, 10_000, console)
  await listening(behind, { path: doorSocket })
  await listening(createServer({ keepAliveTimeout: 60_000 }, answered), { path: relaySocket })
  const local = { port: 0, host: '127.0.0.1' }
  process.send({
    plain: await listening(createServer({ keepAliveTimeout: 60_000 }, answered), local),
    itself: await listening(createTlsServer(tls, answered), local),
  })
}
process.once('disconnect', () => process.exit(0))
