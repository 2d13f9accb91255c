import { z } from 'zod'
import { redactUrl } from '../config/redact.js'
import { holdsLogin } from '../config/url-login.js'
import { GantryError, type ErrorCode } from '../errors.js'
import type { IndexEntry } from '../serving/model-server.js'
import { askServer, reasonOfSocket } from '../tools/client/ask-server.js'
import { tlsHint } from '../tools/client/client-errors.js'
import type { ServerLogin } from '../tools/client/server-socket.js'
import { UsageError } from './failure.js'

const indexSchema = z.array(
  z.object({
    name: z.string(),
    version: z.string().default(''),
    state: z.enum(['UNKNOWN', 'READY', 'UNAVAILABLE', 'LOADING', 'UNLOADING', '']).default(''),
    reason: z.string().default(''),
  }),
)
const errorSchema = z.object({ error: z.string() })

/** A running service did not do what was asked. */
export class ModelServerAnswerError extends GantryError {
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly hint: string,
    cause?: unknown,
  ) {
    super(message, { cause })
    this.name = 'ModelServerAnswerError'
  }
}

/** The repository of a running service, by its HTTP API. Triton's servers have the same. */
export class ModelServerClient {
  readonly #base: string

  /**
   * @param url - of the service, such as `http://127.0.0.1:8000`.
   * @throws UsageError if it is none
   */
  constructor(
    url: string,
    readonly login: ServerLogin,
  ) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      throw new UsageError(
        `--url ${redactUrl(url)}: not an http:// or https:// URL`,
        'Write --url http://HOST:PORT.',
      )
    if (holdsLogin(url))
      throw new UsageError(
        `--url ${redactUrl(url)}: a service takes a token, no login`,
        'Give it with --token or GANTRY_TOKEN.',
      )
    this.#base = url.replace(/\/+$/, '')
  }

  async index(): Promise<readonly IndexEntry[]> {
    return indexSchema.parse(JSON.parse(await this.#post('/v2/repository/index', {})))
  }

  /** Resolves when the model serves. @param config - ModelConfig as JSON, in place of the model's own. */
  async load(name: string, config: string | undefined): Promise<void> {
    const parameters = config === undefined ? {} : { parameters: { config } }
    await this.#post(`/v2/repository/models/${encodeURIComponent(name)}/load`, parameters)
  }

  async unload(name: string, unloadDependents: boolean): Promise<void> {
    const body = { parameters: { unload_dependents: unloadDependents } }
    await this.#post(`/v2/repository/models/${encodeURIComponent(name)}/unload`, body)
  }

  async #post(path: string, body: unknown): Promise<string> {
    const question = { method: 'POST', body, ...this.login }
    const { status, text } = await askServer(this.#base + path, question).catch((error: unknown) => {
      throw new ModelServerAnswerError(
        'GANTRY_ENVIRONMENT',
        `no service answers at ${this.#base}: ${reasonOfSocket(error)}`,
        tlsHint(error) ?? 'Start one with `gantry serve`, or name another with --url.',
        error,
      )
    })
    if (status >= 200 && status < 300) return text
    if (status === 401)
      throw new ModelServerAnswerError(
        'GANTRY_UNAUTHORIZED',
        `the service at ${this.#base} asks for its token`,
        'Give it with --token or GANTRY_TOKEN.',
      )
    throw new ModelServerAnswerError('GANTRY_MODEL_SERVER', errorOf(text, status), hintOf(text))
  }
}

function errorOf(text: string, status: number): string {
  try {
    return errorSchema.parse(JSON.parse(text)).error
  } catch {
    return `the service answered with status ${status}`
  }
}

function hintOf(text: string): string {
  return text.includes('polling is enabled')
    ? 'The service loads models by itself; set models.control to "explicit" to load them by hand.'
    : '`gantry models list --url URL` shows what the service has, and why a model is not ready.'
}
