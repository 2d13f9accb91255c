import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type {
  ConnectOptions,
  GantryStream,
  StreamMessage,
  StreamState,
  Wants,
} from '../../clients/typescript/src/index.js'
import { connect as connectByBrowser, GantryClientError } from '../../clients/typescript/src/index.js'
import { connect as connectByNode } from '../../clients/typescript/src/node.js'
import { pythonClients } from './python-clients.js'
import { until } from './until.js'

type ReaderOptions = Pick<
  ConnectOptions,
  'cameras' | 'labels' | 'minScore' | 'frames' | 'resumeAfter' | 'maxWaiting'
> &
  Readonly<{
    url: string
    token?: string
    /** PEM file of who vouches for the service; a browser has its own. */
    ca?: string
  }>

type Failure = Readonly<{ code: string; message: string; hint: string; status?: number | null | undefined }>

type Seen = Pick<StreamState, 'state' | 'trouble'> & Readonly<{ error?: Failure | null }>

/** Somebody who reads the stream of a service by one of the client packages. */
export abstract class StreamReader {
  readonly messages: StreamMessage[] = []
  readonly states: Seen[] = []
  /** What ended it. */
  failed: Failure | undefined
  hasEnded = false
  /** At its end: how far the clock of the service is ahead of that of this computer. */
  aheadMs: number | undefined

  /** Handles no further message until {@link go}. */
  abstract hold(): void
  abstract go(): void
  abstract subscribe(wants: Wants): void
  /** Resolves when the loop that reads has ended. */
  abstract close(): Promise<void>

  get state(): StreamState['state'] | undefined {
    return this.states.at(-1)?.state
  }

  get cursors(): readonly string[] {
    return this.messages.flatMap((message) => (message.type === 'detections' ? [message.cursor] : []))
  }

  get gaps(): number {
    return this.messages.filter(({ type }) => type === 'gap').length
  }

  /** Waits for so many results more. */
  async more(count = 3, withinMs = 30_000): Promise<void> {
    const wanted = this.cursors.length + count
    await until(`${count} results`, () => this.cursors.length >= wanted, withinMs)
  }
}

class OwnReader extends StreamReader {
  readonly #stream: GantryStream
  readonly #reading: Promise<void>
  #free: Promise<void> = Promise.resolve()
  #release: () => void = () => undefined

  constructor(connect: (options: ConnectOptions) => GantryStream, options: ReaderOptions) {
    super()
    this.#stream = connect({ ...options, onState: (state) => this.states.push(state) })
    this.#reading = this.#read()
  }

  hold(): void {
    this.#free = new Promise((resolve) => (this.#release = resolve))
  }

  go(): void {
    this.#release()
  }

  subscribe(wants: Wants): void {
    this.#stream.subscribe(wants)
  }

  async close(): Promise<void> {
    this.#release()
    this.#stream.close()
    await this.#reading
  }

  async #read(): Promise<void> {
    try {
      for await (const message of this.#stream) {
        this.messages.push(message)
        await this.#free
      }
    } catch (error) {
      if (!(error instanceof GantryClientError)) throw error
      this.failed = error
    }
    this.aheadMs = this.#stream.clock.now() - Date.now()
    this.hasEnded = true
  }
}

class PythonReader extends StreamReader {
  readonly #child
  readonly #ended: Promise<unknown>
  #stderr = ''

  constructor(options: ReaderOptions) {
    super()
    const { url, token, ca, cameras, labels, frames } = options
    const { minScore: min_score, resumeAfter: resume_after, maxWaiting: max_waiting } = options
    const asked = { url, token, ca, cameras, labels, frames, min_score, resume_after, max_waiting }
    const root = join(import.meta.dirname, '../..')
    this.#child = spawn(
      pythonClients ?? '',
      [join(root, 'test/clients/read_stream.py'), JSON.stringify(asked)],
      { env: { ...process.env, PYTHONPATH: join(root, 'clients/python/src'), PYTHONDONTWRITEBYTECODE: '1' } },
    )
    this.#ended = once(this.#child, 'close')
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text))
    createInterface(this.#child.stdout).on('line', (line) => this.#told(JSON.parse(line) as Told))
    void this.#ended.then(() => (this.hasEnded = true))
  }

  hold(): void {
    this.#say({ order: 'hold' })
  }

  go(): void {
    this.#say({ order: 'go' })
  }

  subscribe(wants: Wants): void {
    this.#say({ order: 'subscribe', wants })
  }

  async close(): Promise<void> {
    if (!this.hasEnded) this.#say({ order: 'close' })
    await this.#ended
    if (this.#stderr.includes('Traceback')) throw new Error(this.#stderr)
  }

  #say(order: object): void {
    this.#child.stdin.write(`${JSON.stringify(order)}\n`)
  }

  #told({ message, state, failed, ended }: Told): void {
    if (message !== undefined) this.messages.push(message.type === 'picture' ? withBytes(message) : message)
    if (state !== undefined) this.states.push(state)
    if (failed !== undefined) this.failed = failed
    if (ended !== undefined) this.aheadMs = ended.aheadMs
  }
}

type Told = Readonly<{
  message?: StreamMessage
  state?: Seen
  failed?: Failure
  ended?: Readonly<{ aheadMs: number }>
}>

function withBytes(picture: Extract<StreamMessage, { type: 'picture' }>): StreamMessage {
  return { ...picture, jpeg: new Uint8Array(Buffer.from(String(picture.jpeg), 'base64')) }
}

/** Every way to read a stream by a package of this project. */
export const streamReaders: readonly Readonly<{
  name: string
  read: (options: ReaderOptions) => StreamReader
}>[] = [
  {
    name: 'Node',
    read: ({ ca, ...options }) =>
      new OwnReader(
        (all) => connectByNode({ ...all, ...(ca !== undefined && { tls: { ca: readFileSync(ca) } }) }),
        options,
      ),
  },
  { name: 'a browser', read: (options) => new OwnReader(connectByBrowser, options) },
  ...(pythonClients === undefined
    ? []
    : [{ name: 'Python', read: (options: ReaderOptions) => new PythonReader(options) }]),
]
