import { Client, credentials, Metadata, status } from '@grpc/grpc-js'
import { Agent, request } from 'node:http'
import { encodeMessage, inferenceService } from '../../src/kserve/grpc-schema.js'
import { mutated, mutatedValue, randomFrom } from './mutate.js'

export type FuzzResult = Readonly<{
  sent: number
  /** Requests that nobody answered in time. */
  unanswered: number
  /** Answers by status. */
  answers: Readonly<Record<string, number>>
}>

const answerMs = 10_000
const sideBySide = 8

const tensor = (name: string) => ({ name, datatype: 'FP32', shape: [1, 16] })
const values = Buffer.alloc(64)

/** Sends mutated inference requests over HTTP: values, bytes of bodies, header lengths, content encodings, paths. */
export async function fuzzHttp(address: string, count: number, seed: number): Promise<FuzzResult> {
  const random = randomFrom(seed)
  const withBinary = {
    id: 'f',
    parameters: { priority: 1, sequence_id: 4 },
    inputs: ['INPUT0', 'INPUT1'].map((name) => ({ ...tensor(name), parameters: { binary_data_size: 64 } })),
    outputs: [{ name: 'OUTPUT0', parameters: { classification: 2 } }],
  }
  const withData = {
    inputs: ['INPUT0', 'INPUT1'].map((name) => ({ ...tensor(name), data: Array(16).fill(1.5) })),
  }
  const jsonOf = (value: object) => Buffer.from(JSON.stringify(value))
  const json = jsonOf(withBinary)
  const binary = Buffer.concat([json, values, values])
  const plain = jsonOf(withData)
  const agent = new Agent({ keepAlive: true, maxSockets: sideBySide })
  const lengths = [String(json.byteLength), '0', '-1', '99999999', 'x', '']
  const paths = [
    'models/add_sub/infer',
    'models/add_sub/versions/1/infer',
    'repository/index',
    'logging',
    'trace/setting',
  ]
  /** The whole of a sound form, but for its values. */
  const odd = (): Promise<string> => {
    const isBinary = random(2) === 0
    const head = jsonOf(mutatedValue(isBinary ? withBinary : withData, random))
    const body = isBinary ? Buffer.concat([head, values, values]) : head
    const headers = {
      'content-length': body.byteLength,
      ...(isBinary && { 'inference-header-content-length': head.byteLength }),
    }
    return post(`http://${address}/v2/${paths[random(20)] ?? paths[0]}`, headers, body, agent)
  }
  const one = (): Promise<string> => {
    if (random(2) === 0) return odd()
    const body = mutated(random(2) === 0 ? binary : plain, random)
    const encoding = ['gzip', 'deflate', 'br'][random(40)]
    const headers = {
      'content-length': body.byteLength,
      ...(random(3) === 0
        ? {}
        : { 'inference-header-content-length': lengths[random(8)] ?? String(json.byteLength) }),
      ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
    }
    return post(`http://${address}/v2/${paths[random(20)] ?? paths[0]}`, headers, body, agent)
  }
  const result = await repeat(count, one)
  agent.destroy()
  return result
}

function post(
  url: string,
  headers: Record<string, string | number>,
  body: Buffer,
  agent: Agent,
): Promise<string> {
  return new Promise((resolve) => {
    const sent = request(url, { method: 'POST', headers, agent, timeout: answerMs }, (answer) => {
      answer.resume()
      answer.once('end', () => resolve(String(answer.statusCode)))
      answer.once('error', () => resolve('cut'))
    })
    sent.once('timeout', () => {
      resolve('unanswered')
      sent.destroy()
    })
    sent.once('error', (error) => resolve('code' in error ? String(error.code) : 'cut'))
    sent.end(body)
  })
}

/** Sends mutated messages over gRPC, their values or their bytes: `ModelInfer` mostly, and the other calls that carry a message. */
export async function fuzzGrpc(address: string, count: number, seed: number): Promise<FuzzResult> {
  const random = randomFrom(seed)
  const client = new Client(address, credentials.createInsecure())
  const inferType = inferenceService.methods['ModelInfer']?.resolvedRequestType
  if (!inferType) throw new Error('the schema is not resolved')
  const inputs = ['INPUT0', 'INPUT1'].map(tensor)
  const contents = { fp32_contents: Array<number>(16).fill(1.5) }
  const sound = [
    {
      model_name: 'add_sub',
      id: 'f',
      parameters: { priority: { int64_param: 1 }, sequence_id: { string_param: 's' } },
      inputs,
      outputs: [{ name: 'OUTPUT0', parameters: { classification: { int64_param: 2 } } }],
      raw_input_contents: [values, values],
    },
    { model_name: 'add_sub', inputs: inputs.map((input) => ({ ...input, contents })) },
  ] as const
  const others = ['ModelConfig', 'ModelStatistics', 'ModelMetadata', 'TraceSetting', 'RepositoryIndex']
  /** With other values; as it is where the schema cannot say them. */
  const encoded = (message: object): Buffer => {
    try {
      return encodeMessage(inferType, { ...mutatedValue(message, random) })
    } catch {
      return encodeMessage(inferType, { ...message })
    }
  }
  const one = (): Promise<string> => {
    const message = sound[random(sound.length)] ?? sound[0]
    const bytes = random(2) === 0 ? encoded(message) : mutated(encodeMessage(inferType, message), random)
    return call(client, others[random(40)] ?? 'ModelInfer', bytes)
  }
  const result = await repeat(count, one)
  client.close()
  return result
}

function call(client: Client, method: string, message: Buffer): Promise<string> {
  const asIs = (bytes: Buffer): Buffer => bytes
  const options = { deadline: Date.now() + answerMs }
  const path = `/inference.GRPCInferenceService/${method}`
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, asIs, asIs, message, new Metadata(), options, (error) => {
      const code = error?.code ?? status.OK
      resolve(code === status.DEADLINE_EXCEEDED ? 'unanswered' : String(code))
    })
  })
}

async function repeat(count: number, one: () => Promise<string>): Promise<FuzzResult> {
  const answers: Record<string, number> = {}
  let left = count
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const answer = await one()
      answers[answer] = (answers[answer] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: sideBySide }, worker))
  return { sent: count, unanswered: answers['unanswered'] ?? 0, answers }
}
