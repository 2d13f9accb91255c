import { Server, ServerCredentials, status, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import { KserveBackend } from '../../../src/backends/kserve/kserve-backend.js'
import { KserveCluster } from '../../../src/backends/kserve/kserve-cluster.js'
import { modelReady } from '../../../src/backends/kserve/kserve-messages.js'
import { kserveSettings } from '../../../src/backends/kserve/kserve-settings.js'
import { decodeMessage, encodeMessage, grpcRoot, type Message } from '../../../src/kserve/grpc-schema.js'
import type { LoadedModel } from '../../../src/runtime/loaded-model.js'
import { type Certificate, selfSigned } from '../../support/certificate.js'
import { contextOf, fp32, requestOf, scheduled, valuesOf } from '../../support/direct-model.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'

type Answer = Message | { code: status; details: string } | 'silence'
type Remote = {
  port: number
  requests: Message[]
  answer: (method: string, message: Message) => Answer
  stop: () => void
}

const metadata = {
  name: 'double',
  inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 2] }],
  outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 2] }],
}

/** A server that doubles, unless told otherwise. */
function doubled(method: string, message: Message): Answer {
  if (method === 'ModelMetadata') return metadata
  if (method === 'ModelConfig') return { config: { name: 'double', max_batch_size: 4 } }
  if (method === 'ModelReady') return { ready: true }
  const [input] = message.inputs as { shape: number[] }[]
  const [raw] = message.raw_input_contents as Uint8Array[]
  const values = new Float32Array(new Uint8Array(raw!).buffer).map((value) => value * 2)
  return {
    model_name: 'double',
    outputs: [{ name: 'y', datatype: 'FP32', shape: input!.shape }],
    raw_output_contents: [new Uint8Array(values.buffer)],
  }
}

type Security = Certificate & Readonly<{ token: string }>

/** @param security - TLS with that certificate, for callers with the token alone. */
async function startRemote(port = 0, security?: Security): Promise<Remote> {
  const remote: Remote = { port: 0, requests: [], answer: doubled, stop: () => server.forceShutdown() }
  const server = new Server()
  const methods = ['ModelInfer', 'ModelMetadata', 'ModelConfig', 'ModelReady']
  const type = (name: string) => grpcRoot.lookupType(`inference.${name}`)
  server.addService(
    Object.fromEntries(
      methods.map((method) => [
        method,
        {
          path: `/inference.GRPCInferenceService/${method}`,
          requestStream: false,
          responseStream: false,
          requestSerialize: (message: Message) => encodeMessage(type(`${method}Request`), message),
          requestDeserialize: (bytes: Buffer) => decodeMessage(type(`${method}Request`), bytes),
          responseSerialize: (message: Message) => encodeMessage(type(`${method}Response`), message),
          responseDeserialize: (bytes: Buffer) => decodeMessage(type(`${method}Response`), bytes),
        },
      ]),
    ),
    Object.fromEntries(
      methods.map((method) => [
        method,
        (call: ServerUnaryCall<Message, Message>, answer: sendUnaryData<Message>) => {
          const [sent] = call.metadata.get('authorization')
          if (security !== undefined && sent !== `Bearer ${security.token}`) {
            answer({ code: status.UNAUTHENTICATED, details: 'no token' })
            return
          }
          if (method === 'ModelInfer') remote.requests.push(call.request)
          const given = remote.answer(method, call.request)
          if (given === 'silence') return
          if ('code' in given) answer({ code: given.code as status, details: String(given.details) })
          else answer(null, given)
        },
      ]),
    ),
  )
  remote.port = await new Promise<number>((resolve, reject) =>
    server.bindAsync(`127.0.0.1:${port}`, credentials(security), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  )
  onTestFinished(() => server.forceShutdown())
  return remote
}

function credentials(security: Security | undefined): ServerCredentials {
  if (security === undefined) return ServerCredentials.createInsecure()
  const { key, certificate } = security
  return ServerCredentials.createSsl(null, [{ private_key: key, cert_chain: certificate }])
}

function contextFor(
  remotes: readonly Remote[],
  parameters: Readonly<Record<string, string>> = {},
  io = '',
  versionDir = '',
) {
  const all = {
    kserve_addresses: remotes.map(({ port }) => `127.0.0.1:${port}`).join(','),
    kserve_model: 'double',
    kserve_probe_ms: '20',
    ...parameters,
  }
  const text = Object.entries(all)
    .map(([key, value]) => `parameters { key: "gantry.${key}" value { string_value: "${value}" } }`)
    .join('\n')
  return contextOf('remote', parseModelConfig(`${io} ${text}`, 'config.pbtxt'), versionDir)
}

async function serve(...args: Parameters<typeof contextFor>) {
  const context = contextFor(...args)
  const model = await scheduled(await new KserveBackend().open(context), context)
  onTestFinished(() => model.stop(5_000))
  return model
}

const x = (...values: number[]) => requestOf([fp32('x', [values.length / 2, 2], values)])

describe('a model on another server', () => {
  it('takes tensors and batch size from there, and answers what it answers', async () => {
    const remote = await startRemote()
    const model = await serve([remote])
    expect(model).toMatchObject({
      platform: 'kserve',
      inputs: metadata.inputs,
      outputs: metadata.outputs,
      config: { max_batch_size: 4 },
    })
    const [y] = await model.infer(x(1, 2, 3, 4))
    expect(y?.shape).toEqual([2, 2])
    expect(valuesOf(y)).toEqual([2, 4, 6, 8])
    expect(remote.requests[0]).toMatchObject({ model_name: 'double', model_version: '' })
  })

  it('spreads requests over its addresses', async () => {
    const remotes = [await startRemote(), await startRemote()]
    const model = await serve(remotes)
    for (let i = 0; i < 10; i++) await model.infer(x(i, i))
    expect(remotes.map(({ requests }) => requests.length)).toEqual([5, 5])
  })

  it('tries another address when one is gone, leaves it out, and takes it back when it answers', async () => {
    const remotes = [await startRemote(), await startRemote()]
    const context = contextFor(remotes)
    const cluster = new KserveCluster(kserveSettings(context), silentLog())
    onTestFinished(() => cluster.close())
    const ask = () => cluster.call(modelReady, { name: 'double' }, { retry: true, signal: undefined })
    remotes[0]!.stop()
    for (let i = 0; i < 4; i++) expect(await ask()).toBe(true)
    const [first = '', second = ''] = remotes.map(({ port }) => `127.0.0.1:${port}`)
    expect(cluster.health).toEqual({ [first]: false, [second]: true })
    await startRemote(remotes[0]!.port)
    await until('the address to answer', () => cluster.health[first])
  })

  it('does not send a request of a sequence twice, nor one that the server refused', async () => {
    const remote = await startRemote()
    const model = await serve([remote])
    remote.answer = () => ({ code: status.UNAVAILABLE, details: 'busy' })
    await expect(
      model.infer({ ...x(1, 2), sequence: { id: '7', start: true, end: false } }),
    ).rejects.toMatchObject({ status: 'UNAVAILABLE' })
    expect(remote.requests).toHaveLength(1)
    expect(remote.requests[0]).toMatchObject({ parameters: { sequence_id: { string_param: '7' } } })
    remote.answer = () => ({ code: status.INVALID_ARGUMENT, details: 'wrong shape' })
    await expect(model.infer(x(1, 2))).rejects.toMatchObject({
      status: 'INVALID_ARG',
      message: expect.stringContaining('wrong shape') as string,
    })
    expect(remote.requests).toHaveLength(2)
  })

  it('tries again with pauses while the only address is busy, and gives up after its retries', async () => {
    const remote = await startRemote()
    const model = await serve([remote], { kserve_retries: '2' })
    let left = 2
    remote.answer = (method, message) =>
      method === 'ModelInfer' && left-- > 0
        ? { code: status.UNAVAILABLE, details: 'busy' }
        : doubled(method, message)
    expect(valuesOf((await model.infer(x(1, 2)))[0])).toEqual([2, 4])
    expect(remote.requests).toHaveLength(3)
    left = 3
    await expect(model.infer(x(1, 2))).rejects.toThrow('busy')
  })

  it('gives up after its time-out, and when the caller cancels', async () => {
    const remote = await startRemote()
    // Nothing is asked at the load then, which a busy machine would not answer within this time.
    const tensors = `input { name: "x" data_type: TYPE_FP32 dims: [ -1, 2 ] } output { name: "y" data_type: TYPE_FP32 dims: [ -1, 2 ] }`
    const model = await serve([remote], { kserve_timeout_ms: '150' }, tensors)
    remote.answer = () => 'silence'
    await expect(model.infer(x(1, 2))).rejects.toMatchObject({ status: 'UNAVAILABLE' })
    const patient = await serve([remote], {}, tensors)
    const cancel = new AbortController()
    const seen = remote.requests.length
    const running = patient.infer({ ...x(1, 2), signal: cancel.signal })
    await until('the request to arrive', () => remote.requests.length > seen)
    cancel.abort()
    await expect(running).rejects.toMatchObject({ status: 'CANCELLED' })
  })

  describe('with dynamic_batching', () => {
    const waiting = `dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 60000000 }`
    const all = (model: LoadedModel) =>
      Promise.allSettled([x(1, 2), x(3, 4), x(5, 6), x(7, 8)].map((request) => model.infer(request)))
    const answers = (results: Awaited<ReturnType<typeof all>>) =>
      results.map((result) =>
        result.status === 'rejected' ? String(result.reason) : valuesOf(result.value[0]),
      )

    it('sends a batch as one request', async () => {
      const remote = await startRemote()
      const model = await serve([remote], {}, waiting)
      expect(answers(await all(model))).toEqual([
        [2, 4],
        [6, 8],
        [10, 12],
        [14, 16],
      ])
      expect(remote.requests.map(({ inputs }) => inputs)).toMatchObject([[{ name: 'x', shape: [4, 2] }]])
    })

    it('sends the requests of a batch alone that the server refused, so that only the faulty one fails', async () => {
      const remote = await startRemote()
      const model = await serve([remote], {}, waiting)
      remote.answer = (method, message) => {
        const [raw] = (message.raw_input_contents ?? []) as Uint8Array[]
        const values = raw === undefined ? [] : [...new Float32Array(new Uint8Array(raw).buffer)]
        return values.includes(5)
          ? { code: status.INVALID_ARGUMENT, details: 'no fives' }
          : doubled(method, message)
      }
      expect(answers(await all(model))).toEqual([
        [2, 4],
        [6, 8],
        expect.stringContaining('no fives'),
        [14, 16],
      ])
      expect(remote.requests).toHaveLength(5)
    })

    it('does not send the requests of a batch again that no server took', async () => {
      const remote = await startRemote()
      const model = await serve([remote], { kserve_retries: '0' }, waiting)
      remote.answer = () => ({ code: status.UNAVAILABLE, details: 'busy' })
      expect(answers(await all(model))).toEqual(Array(4).fill(expect.stringContaining('busy')))
      expect(remote.requests).toHaveLength(1)
    })

    it('ends the request when the last of its batch is cancelled', async () => {
      const remote = await startRemote()
      const model = await serve([remote], {}, waiting)
      remote.answer = () => 'silence'
      const callers = [1, 2, 3, 4].map(() => new AbortController())
      const runs = callers.map(({ signal }) => model.infer({ ...x(1, 2), signal }))
      const ended = Promise.allSettled(runs)
      await until('the request to arrive', () => remote.requests.length > 0)
      for (const caller of callers) caller.abort()
      for (const result of await ended)
        expect(result).toMatchObject({ status: 'rejected', reason: { status: 'CANCELLED' } })
    })
  })

  it('reads answers without raw contents', async () => {
    const remote = await startRemote()
    const model = await serve([remote])
    remote.answer = () => ({
      outputs: [{ name: 'y', datatype: 'FP32', shape: [1, 2], contents: { fp32_contents: [3, 4] } }],
    })
    expect(valuesOf((await model.infer(x(1, 2)))[0])).toEqual([3, 4])
  })
})

describe('a model on another server, by TLS and with a token', () => {
  const parameters = {
    kserve_tls: 'true',
    kserve_ca_file: 'ca.pem',
    kserve_token_file: 'token',
    kserve_timeout_ms: '3000',
  }

  /** Folder of a version, with what the calling side knows beside it. */
  function versionDir(ca: Buffer, token: string): string {
    const dir = tempDir()
    writeFileSync(join(dir, 'ca.pem'), ca)
    writeFileSync(join(dir, 'token'), `${token}\n`)
    mkdirSync(join(dir, '1'))
    return join(dir, '1')
  }

  it('answers, also while one of two addresses is down, which is taken back when it answers', async () => {
    const security = { ...selfSigned(), token: 'secret' }
    const remotes = [await startRemote(0, security), await startRemote(0, security)]
    const model = await serve(remotes, parameters, '', versionDir(security.certificate, 'secret'))
    const asked = () => model.infer(x(1, 2)).then(([y]) => valuesOf(y))
    for (let i = 0; i < 4; i++) expect(await asked()).toEqual([2, 4])
    expect(remotes.map(({ requests }) => requests.length)).toEqual([2, 2])
    remotes[0]!.stop()
    for (let i = 0; i < 6; i++) expect(await asked()).toEqual([2, 4])
    expect(remotes.map(({ requests }) => requests.length)).toEqual([2, 8])
    const back = await startRemote(remotes[0]!.port, security)
    await until('requests at the address that is back', async () => {
      expect(await asked()).toEqual([2, 4])
      return back.requests.length > 0
    })
  })

  it('refuses a server with another certificate, and is refused with another token', async () => {
    const security = { ...selfSigned(), token: 'secret' }
    const remote = await startRemote(0, security)
    const load = (ca: Buffer, token: string) =>
      new KserveBackend().open(
        contextFor([remote], { ...parameters, kserve_retries: '0' }, '', versionDir(ca, token)),
      )
    await expect(load(selfSigned().certificate, 'secret')).rejects.toThrow(/certificate/)
    await expect(load(security.certificate, 'guessed')).rejects.toThrow('no token')
    expect(remote.requests).toEqual([])
  })

  it('sends no token without TLS', async () => {
    const remote = await startRemote()
    const dir = versionDir(Buffer.from(''), 'secret')
    await expect(
      new KserveBackend().open(contextFor([remote], { kserve_token_file: 'token' }, '', dir)),
    ).rejects.toThrow('needs gantry.kserve_tls')
  })
})

describe('loading a model of another server', () => {
  it('needs no answer where the configuration lists all tensors', async () => {
    const remote = await startRemote()
    remote.stop()
    const io = `input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 2 ] }`
    const model = await serve([remote], { kserve_timeout_ms: '500' }, io)
    expect(model.inputs).toEqual([{ name: 'x', datatype: 'FP32', shape: [2] }])
  })

  const closed: Remote = { port: 9, requests: [], answer: doubled, stop: () => undefined }
  it.each([
    ['no address', { kserve_addresses: 'http://a/b' }, 'gantry.kserve_addresses is "http://a/b"'],
    ['a file outside of its folder', { kserve_ca_file: '../ca.pem' }, 'is not a plain file name'],
    ['a file that is not there', { kserve_ca_file: 'ca.pem' }, 'cannot be read'],
    ['a time-out that is none', { kserve_timeout_ms: 'soon' }, 'gantry.kserve_timeout_ms is "soon"'],
  ])('refuses %s', async (_, parameters, problem) => {
    await expect(new KserveBackend().open(contextFor([closed], parameters))).rejects.toThrow(problem)
  })

  it('says what the server said when nothing is known of the model', async () => {
    const remote = await startRemote()
    remote.answer = () => ({
      code: status.NOT_FOUND,
      details: "Request for unknown model: 'double' is not found",
    })
    await expect(new KserveBackend().open(contextFor([remote]))).rejects.toThrow("unknown model: 'double'")
  })
})
