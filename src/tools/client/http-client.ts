import type { GantryError } from '../../errors.js'
import type { Tensor } from '../../tensors/tensor.js'
import { ServerRefusalError, ServerTokenError } from './client-errors.js'
import type { HttpAnswer } from './http-answer-reader.js'
import { answeredTensors, inferBody, type WireForm } from './http-infer.js'
import { HttpLane } from './http-lane.js'
import type { InferLane, LaneAnswer, PreparedRequest } from './infer-lane.js'
import { KServeClient, type ModelRef, type ServerMetadata } from './kserve-client.js'
import type { ServerTrust } from './server-socket.js'
import type { ServerTarget } from './server-url.js'

/** Up to this size a request is one piece: a copy costs less than another write. */
const onePieceBytes = 1024 ** 2

/** The protocol over HTTP/1.1. */
export class HttpKServeClient extends KServeClient {
  readonly #lanes = new Set<HttpLane>()
  readonly #head: string

  /** @param form - of tensors in requests. */
  constructor(
    target: ServerTarget,
    readonly trust: ServerTrust,
    token: string | undefined,
    readonly form: WireForm,
  ) {
    super(target)
    const { host, port } = target
    const named = host.includes(':') ? `[${host}]` : host
    const authorization = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`
    this.#head = ` HTTP/1.1\r\nHost: ${named}:${port}\r\n${authorization}`
  }

  async ready(): Promise<boolean> {
    return this.#isOk('/v2/health/ready')
  }

  async serverMetadata(): Promise<ServerMetadata> {
    const { name = '', version = '', extensions = [] } = (await this.#get('/v2')) as Partial<ServerMetadata>
    return { name, version, extensions }
  }

  async modelReady(model: ModelRef): Promise<boolean> {
    return this.#isOk(`${pathOf(model)}/ready`)
  }

  override prepare(
    model: ModelRef,
    inputs: readonly Tensor[],
    outputs: readonly string[] = [],
  ): PreparedRequest {
    const { contentType, jsonBytes, chunks } = inferBody(inputs, outputs, this.form)
    const bytes = chunks.reduce((sum, { byteLength }) => sum + byteLength, 0)
    const own =
      `Content-Type: ${contentType}\r\nContent-Length: ${bytes}\r\n` +
      (this.form === 'binary' ? `Inference-Header-Content-Length: ${jsonBytes}\r\n` : '')
    const head = Buffer.from(`POST ${this.target.prefix}${pathOf(model)}/infer${this.#head}${own}\r\n`)
    const all = [head, ...chunks]
    return { chunks: bytes <= onePieceBytes ? [Buffer.concat(all)] : all }
  }

  override lane(): InferLane {
    const lane = this.#connection()
    this.#lanes.add(lane)
    return lane
  }

  override close(): void {
    for (const lane of this.#lanes) lane.close()
    this.#lanes.clear()
  }

  protected override describeModel(model: ModelRef) {
    return this.#get(pathOf(model))
  }

  protected override describeConfig(model: ModelRef) {
    return this.#get(`${pathOf(model)}/config`)
  }

  protected override describeStatistics(model: ModelRef) {
    return this.#get(`${pathOf(model)}/stats`)
  }

  protected override tensorsIn(answer: LaneAnswer): readonly Tensor[] {
    return answeredTensors(answer)
  }

  async #get(path: string): Promise<Readonly<Record<string, unknown>>> {
    const { body } = await this.#ask(path)
    return this.understood(() => {
      const said: unknown = JSON.parse(body.toString())
      if (typeof said !== 'object' || said === null) throw new Error('it is no JSON object')
      return said as Readonly<Record<string, unknown>>
    })
  }

  async #isOk(path: string): Promise<boolean> {
    try {
      await this.#ask(path)
      return true
    } catch (error) {
      if (error instanceof ServerRefusalError) return false
      throw error
    }
  }

  #ask(path: string): Promise<LaneAnswer> {
    const text = `GET ${this.target.prefix}${path}${this.#head}\r\n`
    return this.exchange(this.#connection(), { chunks: [Buffer.from(text)] })
  }

  #connection(): HttpLane {
    return new HttpLane(this.target, this.trust, (answer) => faultIn(this.url, answer))
  }
}

function pathOf({ name, version }: ModelRef): string {
  const model = `/v2/models/${encodeURIComponent(name)}`
  return version === undefined ? model : `${model}/versions/${encodeURIComponent(version)}`
}

/** What an answer with a status other than 2xx says. */
function faultIn(url: string, { status, body }: HttpAnswer): GantryError | undefined {
  if (status < 300) return undefined
  if (status === 401) return new ServerTokenError(url)
  return new ServerRefusalError(url, wordsOf(body) ?? `status ${status}`, status)
}

function wordsOf(body: Buffer): string | undefined {
  try {
    const { error } = JSON.parse(body.toString()) as { error?: unknown }
    return typeof error === 'string' ? error : undefined
  } catch {
    const text = body.toString().trim().slice(0, 300)
    return text === '' || text.startsWith('<') ? undefined : text
  }
}
