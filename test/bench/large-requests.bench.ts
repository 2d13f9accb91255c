/**
 * What one client's large requests do to the others: latencies of a second client's small requests while each kind is read, run and
 * answered, the longest delay of the event loop of the model server, and the most processor time that its thread took in one part. Goal: no part
 * above 100 ms.
 *
 *     npx tsx test/bench/large-requests.bench.ts [part of a name]
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import {
  addLargeModels,
  binaryTextsBody,
  inferByGrpc,
  jsonOf,
  largeLoadBody,
  textsByGrpc,
  zerosByGrpc,
} from '../support/large-requests.js'
import { protoField } from '../support/raw-proto.js'
import { outputField, rawField, startRemoteModels } from '../support/remote-model.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { quantile, report } from './bench.js'

const only = process.argv[2] ?? ''
const dir = mkdtempSync(join(tmpdir(), 'gantry-bench-'))
const delayFile = join(dir, 'delay')
addLargeModels(join(dir, 'models'))

const half = Buffer.from(Float32Array.of(0.5).buffer)
const remoteText = protoField(8, 'A')
const remotes = await startRemoteModels({
  remote_numbers: outputField('FP32', [15_000_000], protoField(6, Buffer.alloc(60_000_000, half))),
  remote_texts: outputField(
    'BYTES',
    [5_000_000],
    Buffer.alloc(5_000_000 * remoteText.byteLength, remoteText),
  ),
  remote_raw: Buffer.concat([
    outputField('UINT8', [200 * 1024 ** 2]),
    rawField(Buffer.alloc(200 * 1024 ** 2)),
  ]),
})
for (const [name, type] of [
  ['remote_numbers', 'TYPE_FP32'],
  ['remote_texts', 'TYPE_STRING'],
  ['remote_raw', 'TYPE_UINT8'],
] as const) {
  mkdirSync(join(dir, 'models', name))
  const config = `backend: "kserve"
    input { name: "in0" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "y" data_type: ${type} dims: [ -1 ] }
    parameters { key: "gantry.kserve_addresses" value { string_value: "127.0.0.1:${remotes.port}" } }`
  writeFileSync(join(dir, 'models', name, 'config.pbtxt'), config)
}

await using service = await TestService.start({
  pipeline: {
    engines: 0,
    models: { repository: join(dir, 'models'), control: 'explicit', load: ['*'] },
    modelServer: { nice: 0 },
  },
  env: {
    NODE_OPTIONS: `--import=${fileURLToPath(new URL('./loop-delay.mjs', import.meta.url))}`,
    GANTRY_LOOP_DELAY_FILE: delayFile,
  },
})
await until('models', async () => (await service.fetch('/v2/health/ready')).ok, 60_000)
const grpc = `127.0.0.1:${await until('gRPC', async () => (await service.ready()).modelServer?.grpcPort)}`

/** @returns the status; the answer is read and thrown away */
function post(path: string, body: Buffer, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(service.url + path, { method: 'POST', headers: { ...headers } }, (answer) => {
      answer
        .resume()
        .on('end', () => resolve(answer.statusCode ?? 0))
        .on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const infer = (model: string, body: Buffer, headerBytes?: number): Promise<number> =>
  post(
    `/v2/models/${model}/infer`,
    body,
    headerBytes === undefined ? {} : { 'inference-header-content-length': String(headerBytes) },
  )

const binaryOut = ',"outputs":[{"name":"out0","parameters":{"binary_data":true}}]'
const classes = ',"outputs":[{"name":"out0","parameters":{"classification":1000000}}]'

const askRemote = (model: string): Promise<number> =>
  infer(
    model,
    Buffer.from(
      JSON.stringify({
        inputs: [{ name: 'in0', datatype: 'FP32', shape: [4], data: [1, 2, 3, 4] }],
        outputs: [{ name: 'y', parameters: { binary_data: true } }],
      }),
    ),
  )

const kinds: Readonly<Record<string, () => Promise<unknown>>> = {
  'nothing else': () => pause(3_000),
  '15,000,000 texts in JSON': () => infer('count_texts', jsonOf('BYTES', '"A"', 15_000_000)),
  '10,485,760 texts by gRPC': () => inferByGrpc(grpc, textsByGrpc('count_texts', 10_485_760)),
  'a number of 30,000,000 digits': () => infer('echo_numbers', jsonOf('FP32', '7'.repeat(30_000_000), 1)),
  '16,000,000 numbers in JSON': () => infer('echo_numbers', jsonOf('FP32', '0.5', 16_000_000, binaryOut)),
  '3,000,000 numbers of 17 digits in JSON': () =>
    infer('echo_numbers', jsonOf('FP32', '0.12345678806304932', 3_000_000, binaryOut)),
  '8,000,000 numbers, answered in JSON': () => infer('echo_numbers', jsonOf('FP32', '0.1', 8_000_000)),
  '4,000,000 texts, answered in JSON': () => infer('echo_text', jsonOf('BYTES', '"ab"', 4_000_000)),
  '12,000,000 binary texts': () => {
    const { body, headerBytes } = binaryTextsBody(12_000_000)
    return infer('count_texts', body, headerBytes)
  },
  '1,000,000 classes': () => infer('echo_numbers', jsonOf('FP32', '0.5', 1_000_000, classes)),
  '60,000,000 numbers, answered by gRPC': () => inferByGrpc(grpc, zerosByGrpc(60_000_000)),
  '60,000,000 numbers, answered as bytes': () => infer('zeros', jsonOf('INT64', '60000000', 1, binaryOut)),
  '16,000,000 numbers in a compressed body': () =>
    post('/v2/models/echo_numbers/infer', gzipSync(jsonOf('FP32', '0.5', 15_000_000, binaryOut)), {
      'content-encoding': 'gzip',
    }),
  'arrays 20,000,000 deep': () => infer('echo_numbers', Buffer.alloc(20_000_000, '[')),
  'a load request with a file of 40 MB': () =>
    post('/v2/repository/models/sent/load', largeLoadBody(40_000_000)),
  '15,000,000 numbers of another server': () => askRemote('remote_numbers'),
  '5,000,000 texts of another server': () => askRemote('remote_texts'),
  '200 MiB of another server': () => askRemote('remote_raw'),
}

const small = Buffer.from(
  JSON.stringify({ inputs: [{ name: 'in0', datatype: 'FP32', shape: [4], data: [1, 2, 3, 4] }] }),
)

for (const [name, send] of Object.entries(kinds).filter(([key]) => key.includes(only))) {
  rmSync(delayFile, { force: true })
  await pause(500)
  let done = false
  const beganMs = performance.now()
  const answered = send()
    .then((status) => (typeof status === 'number' ? status : 200))
    .catch((error: unknown) => String(error))
    .finally(() => (done = true))
  const latencies: number[] = []
  let failed = 0
  while (!done) {
    const sentMs = performance.now()
    const status = await infer('tiny', small).catch(() => 0)
    if (status === 200) latencies.push(performance.now() - sentMs)
    else failed++
    await pause(5)
  }
  const tookMs = performance.now() - beganMs
  await pause(300)
  const [loopDelay, loopHeld] = readFileSync(delayFile, 'utf8').split(' ').map(Number)
  process.stdout.write(`${name}: answered ${await answered}\n`)
  report(`a second client beside ${name}`, 'ms', {
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    longest: Math.max(...latencies),
    loopDelay: loopDelay ?? NaN,
    loopHeld: loopHeld ?? NaN,
    took: tookMs,
    failed,
    n: latencies.length,
  })
}
await service[Symbol.asyncDispose]()
await remotes.stop()
rmSync(dir, { recursive: true, force: true })
