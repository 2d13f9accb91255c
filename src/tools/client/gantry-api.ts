import { WebSocket } from 'ws'
import { z } from 'zod'
import type { NewCamera } from '../../config/camera.js'
import { streamProtocol } from '../../messages/stream-protocol.js'
import { askServer, reasonOfSocket } from './ask-server.js'
import { ServerRefusalError, ServerTokenError, ServerUnreachableError } from './client-errors.js'
import type { ServerTrust } from './server-socket.js'
import type { ServerTarget } from './server-url.js'

const patienceMs = 15_000
const problemSchema = z.object({ detail: z.string().optional(), title: z.string().optional() })
const cameraSchema = z.object({
  id: z.string(),
  status: z.object({ state: z.string(), reason: z.string() }),
  stats: z.object({
    frames: z.object({ superseded: z.number(), lost: z.number(), shed: z.record(z.string(), z.number()) }),
  }),
})
/** What of a result is measured. Other messages of the stream are passed over. */
const resultSchema = z.object({
  type: z.literal('detections'),
  cameraId: z.string(),
  seq: z.number(),
  capturedAt: z.string(),
  timingsMs: z.object({
    queue: z.number(),
    infer: z.number(),
    postprocess: z.number(),
    captureToPublish: z.number(),
  }),
})

/** How a change of the cameras' ensemble stands. */
const ensembleSchema = z.object({
  name: z.string(),
  configured: z.string(),
  state: z.enum(['steady', 'loading', 'comparing', 'trial']),
  last: z
    .object({
      name: z.string(),
      outcome: z.enum(['kept', 'taken_back', 'refused']),
      reason: z.string(),
      agreement: z.number().nullable(),
      comparedFrames: z.number(),
      p99Ms: z.object({ before: z.number().nullable(), after: z.number().nullable() }),
      at: z.string(),
    })
    .nullable(),
})

export type EnsembleState = z.infer<typeof ensembleSchema>
/** What a new ensemble must keep for so many seconds. */
export type EnsembleTrial = Readonly<{ seconds: number; minAgreement: number; maxP99Ratio: number }>

export type ServiceCamera = z.infer<typeof cameraSchema>
export type SeenResult = z.infer<typeof resultSchema>

/** The API for cameras of a running service of Gantry. */
export class GantryApi {
  readonly #base: string

  /** @param target - of HTTP. */
  constructor(
    readonly target: ServerTarget,
    readonly token: string | undefined,
    readonly trust: ServerTrust = {},
  ) {
    this.#base = target.url
  }

  /** Whether a service with cameras answers there. */
  async isThere(): Promise<boolean> {
    try {
      await this.cameras()
      return true
    } catch (error) {
      if (error instanceof ServerRefusalError) return false
      throw error
    }
  }

  async cameras(): Promise<readonly ServiceCamera[]> {
    const body = await this.#ask('GET', '/api/v1/cameras')
    const { data } = z.object({ items: z.array(cameraSchema) }).safeParse(body)
    if (data === undefined) throw new ServerRefusalError(this.#base, 'it has no list of cameras', 404)
    return data.items
  }

  async addCamera(camera: Partial<NewCamera> & Pick<NewCamera, 'id' | 'url'>): Promise<void> {
    await this.#ask('POST', '/api/v1/cameras', camera)
  }

  async removeCamera(id: string): Promise<void> {
    await this.#ask('DELETE', `/api/v1/cameras/${encodeURIComponent(id)}`)
  }

  /** @throws ServerRefusalError of a service that cannot change its ensemble */
  async ensemble(): Promise<EnsembleState> {
    return this.#ensembleIn(await this.#ask('GET', '/api/v1/ensemble'))
  }

  /** Begins a trial of another ensemble. @throws ServerRefusalError where it is none, or another change is under way */
  async useEnsemble(name: string, trial: EnsembleTrial): Promise<EnsembleState> {
    return this.#ensembleIn(await this.#ask('PUT', '/api/v1/ensemble', { name, trial }))
  }

  #ensembleIn(body: unknown): EnsembleState {
    const { data } = ensembleSchema.safeParse(body)
    if (data === undefined) throw new ServerRefusalError(this.#base, 'it tells nothing of its ensemble', 404)
    return data
  }

  /**
   * Subscribes to the results of cameras.
   *
   * @param lost - called when the stream ends by itself.
   * @returns what ends it.
   */
  async stream(
    cameras: readonly string[],
    seen: (result: SeenResult) => void,
    lost: (error: ServerUnreachableError) => void,
  ): Promise<() => void> {
    const socket = new WebSocket(`${this.#base.replace(/^http/, 'ws')}/api/v1/stream`, streamProtocol, {
      headers: this.token === undefined ? {} : { authorization: `Bearer ${this.token}` },
      ...this.trust,
      handshakeTimeout: patienceMs,
    })
    await new Promise<void>((resolve, reject) => {
      socket.once('error', (error) =>
        reject(new ServerUnreachableError(this.#base, reasonOfSocket(error), error)),
      )
      socket.on('message', (data: Buffer, isBinary) => {
        if (isBinary) return
        const message = JSON.parse(data.toString()) as { type: string }
        if (message.type === 'subscribed') resolve()
        const result = message.type === 'detections' ? resultSchema.safeParse(message).data : undefined
        if (result !== undefined) seen(result)
      })
      // Boxes are not needed, and cost both sides.
      socket.once('open', () =>
        socket.send(JSON.stringify({ type: 'subscribe', cameras, minScore: 1, events: false })),
      )
    })
    const told = () => lost(new ServerUnreachableError(this.#base, 'its stream of results ended'))
    socket.once('close', told)
    return () => {
      socket.removeListener('close', told)
      socket.terminate()
    }
  }

  async #ask(method: string, path: string, body?: unknown): Promise<unknown> {
    const { token, trust } = this
    const signal = AbortSignal.timeout(patienceMs)
    const question = { method, body, token, trust, signal }
    const { status, text } = await askServer(this.#base + path, question).catch((error: unknown) => {
      throw new ServerUnreachableError(this.#base, reasonOfSocket(error), error)
    })
    if (status === 401) throw new ServerTokenError(this.#base)
    const said = parsed(text)
    if (status >= 200 && status < 300) return said
    const problem = problemSchema.safeParse(said).data
    const words = problem?.detail ?? problem?.title ?? `status ${status} for ${method} ${path}`
    throw new ServerRefusalError(this.#base, words, status)
  }
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}
