import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { WebSocket } from 'ws'
import type { CameraView } from '../../src/cameras/camera-view.js'
import type { Readiness } from '../../src/api/gantry.js'
import { serverMessageSchema, type ServerMessage } from '../../src/messages/stream-protocol.js'
import { freePort } from './free-port.js'
import { type ClientTls, fetchByTls } from './tls-client.js'
import { Hopeless, until } from './until.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const cli = join(root, 'dist/cli/main.js')

/** For machines that have more to do. */
const usuallyStartedWithinMs = 60_000

export type ServiceOptions = Readonly<{
  /** Laid over the test's pipeline file. */
  pipeline?: Readonly<Record<string, unknown>>
  /** Laid over its `server`; requests of this class carry the token. */
  server?: Readonly<{
    token?: string
    allowedOrigins?: readonly string[]
    grpcPort?: number
    maxStreamClients?: number
    drainSeconds?: number
    tls?: Readonly<{ cert: string; key: string; clientCa?: string }>
  }>
  /** How clients of this class trust a service with `server.tls`, and what they show it. */
  trust?: ClientTls
  env?: NodeJS.ProcessEnv
  /** A command that ends in becoming the one behind it, such as `prlimit --nofile=100`. */
  under?: readonly string[]
  /** A file for its standard error, which is then not in `stderr`. */
  stderrTo?: string
  /** The command of another installation. */
  script?: string
  /** Use the folder of an earlier service, with its store and its ports. */
  like?: TestService
  /** Longest that its first readiness is waited for. */
  startedWithinMs?: number
  /** What is waited for: that it is ready, or that it answers at all. */
  startedWhen?: 'ready' | 'answering'
}>

/** The real service in a process of its own: `gantry serve` on free ports, with its files in a temporary folder. */
export class TestService {
  stderr = ''
  /** From starting the process to what was waited for, usually its first readiness. */
  startedInMs = 0
  #child: ChildProcess | undefined

  private constructor(
    readonly dir: string,
    readonly httpPort: number,
    readonly metricsPort: number,
    readonly options: ServiceOptions,
  ) {}

  static async start(options: ServiceOptions = {}): Promise<TestService> {
    const { like } = options
    const dir = like?.dir ?? mkdtempSync(join(tmpdir(), 'gantry-e2e-'))
    const service = new TestService(
      dir,
      like?.httpPort ?? (await freePort()),
      like?.metricsPort ?? (await freePort()),
      options,
    )
    const { startedWithinMs = usuallyStartedWithinMs, startedWhen = 'ready' } = options
    const beganMs = performance.now()
    service.#spawn()
    try {
      await (startedWhen === 'ready' ? service.ready(startedWithinMs) : service.answers(startedWithinMs))
    } catch (error) {
      await service[Symbol.asyncDispose]()
      throw error
    }
    service.startedInMs = performance.now() - beganMs
    return service
  }

  /**
   * The bound of something that a start is the greater part of: on a machine that is so busy that a plain start takes longer, it may take
   * as long as that. What else runs changes by the second, so a start is measured again where the first one does not excuse it.
   */
  async boundMs(bound: number, tookMs: number): Promise<number> {
    if (tookMs <= Math.max(bound, this.startedInMs)) return Math.max(bound, this.startedInMs)
    const { like: _, ...options } = this.options
    await using other = await TestService.start(options)
    return Math.max(bound, other.startedInMs)
  }

  get pid(): number {
    const pid = this.#child?.pid
    if (pid === undefined) throw new Error('service was not started')
    return pid
  }

  get isRunning(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null
  }

  get url(): string {
    return `${this.options.server?.tls ? 'https' : 'http'}://127.0.0.1:${this.httpPort}`
  }

  /** Waits for `/readyz` to say yes. */
  async ready(withinMs = 30_000): Promise<Readiness> {
    return until(
      'service ready',
      async () => {
        this.#checkAlive()
        const response = await this.fetch('/readyz')
        return response.ok ? ((await response.json()) as Readiness) : undefined
      },
      withinMs,
    )
  }

  /** Waits until it says how it stands, ready or not. */
  async answers(withinMs: number): Promise<Readiness> {
    return until(
      'an answer of the service',
      async () => {
        this.#checkAlive()
        return this.readiness()
      },
      withinMs,
    )
  }

  /** @throws Hopeless where it has ended: nobody answers any more, or somebody else. */
  #checkAlive(): void {
    const { exitCode = 0, signalCode = null } = this.#child ?? {}
    if (exitCode !== null || signalCode !== null)
      throw new Hopeless(`service ended with ${exitCode ?? signalCode}:\n${this.stderr}`)
  }

  /** How it stands, ready or not. */
  async readiness(): Promise<Readiness> {
    return (await (await this.fetch('/readyz')).json()) as Readiness
  }

  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers)
    const token = this.options.server?.token
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
    const { trust } = this.options
    if (trust) return fetchByTls(this.url + path, trust, { ...init, headers })
    return fetch(this.url + path, { ...init, headers })
  }

  async json<T>(path: string, init?: RequestInit): Promise<T> {
    const response = await this.fetch(path, init)
    const text = await response.text()
    if (!response.ok) throw new Error(`${init?.method ?? 'GET'} ${path}: ${response.status} ${text}`)
    return (text === '' ? undefined : JSON.parse(text)) as T
  }

  send<T>(method: string, path: string, body: unknown): Promise<T> {
    const headers = { 'content-type': 'application/json' }
    return this.json<T>(path, { method, headers, body: JSON.stringify(body) })
  }

  camera(id: string): Promise<CameraView> {
    return this.json<CameraView>(`/api/v1/cameras/${id}`)
  }

  /** Waits until the camera is in the state. */
  cameraIs(id: string, state: CameraView['status']['state'], withinMs = 15_000): Promise<CameraView> {
    return until(
      `camera ${id} ${state}`,
      async () => {
        const camera = await this.camera(id)
        return camera.status.state === state ? camera : undefined
      },
      withinMs,
    )
  }

  /** The page of metrics. */
  async metrics(): Promise<string> {
    return (await this.fetch('/metrics')).text()
  }

  async metric(line: RegExp): Promise<number> {
    return metricIn(await this.metrics(), line)
  }

  async stream(subscription: Readonly<Record<string, unknown>> = {}): Promise<TestStream> {
    const url = this.url.replace('http', 'ws') + '/api/v1/stream'
    const token = this.options.server?.token
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    return TestStream.open(url, subscription, { ...this.options.trust, headers })
  }

  kill(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  /** Exit code, or the signal that ended it. */
  async exited(): Promise<number | NodeJS.Signals> {
    const child = this.#child
    if (!child) throw new Error('service was not started')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    return child.signalCode ?? child.exitCode ?? -1
  }

  /** Ends the process; the folder stays for a service that is `like` this one. */
  async end(): Promise<void> {
    this.kill('SIGTERM')
    await this.exited()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill('SIGKILL')
    await this.exited()
    rmSync(this.dir, { recursive: true, force: true })
  }

  #spawn(): void {
    const file = join(this.dir, 'pipeline.yaml')
    const pipeline = {
      apiVersion: 'gantry/v1',
      name: 'e2e',
      server: {
        httpPort: this.httpPort,
        metricsPort: this.metricsPort,
        grpcPort: 0,
        ...this.options.server,
      },
      // Most tests are about cameras; those about models switch it on.
      modelServer: { enabled: false },
      models: { repository: join(root, 'models') },
      store: { path: join(this.dir, 'data') },
      log: { format: 'json' },
      ...this.options.pipeline,
    }
    writeFileSync(file, stringify(pipeline))
    const { stderrTo, under = [], script = cli } = this.options
    const stderr = stderrTo === undefined ? 'pipe' : openSync(stderrTo, 'w')
    const [command = '', ...args] = [...under, process.execPath, script, 'serve', '-c', file]
    this.#child = spawn(command, args, {
      stdio: ['ignore', 'ignore', stderr],
      env: { ...process.env, ...this.options.env },
    })
    if (typeof stderr === 'number') closeSync(stderr)
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text))
  }
}

/** Sum of the series of a page of metrics whose name and labels are `line`. */
export function metricIn(page: string, line: RegExp): number {
  return [...page.matchAll(new RegExp(`^${line.source} (\\S+)$`, 'gm'))].reduce((sum, match) => {
    return sum + Number(match[match.length - 1])
  }, 0)
}

type Waiting = { accept(message: ServerMessage): boolean; resolve(message: ServerMessage): void }

/** A client of `gantry.v1` that holds every message to the published schema. */
export class TestStream {
  readonly #listeners: ((message: ServerMessage) => void)[] = []
  readonly messages: ServerMessage[] = []
  readonly pictures: Buffer[] = []
  #waiting: Waiting[] = []

  private constructor(readonly socket: WebSocket) {
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.pictures.push(data)
      else this.#received(serverMessageSchema.parse(JSON.parse(data.toString('utf8'))))
    })
  }

  static async open(
    url: string,
    subscription: Readonly<Record<string, unknown>>,
    options: Readonly<Partial<ClientTls> & { headers?: Readonly<Record<string, string>> }> = {},
  ): Promise<TestStream> {
    const socket = new WebSocket(url, 'gantry.v1', options)
    const stream = new TestStream(socket)
    await once(socket, 'open')
    socket.send(JSON.stringify({ type: 'subscribe', ...subscription }))
    await stream.next((message) => message.type === 'subscribed')
    return stream
  }

  /** The first message, from now on, that is accepted. */
  next(accept: (message: ServerMessage) => boolean): Promise<ServerMessage> {
    return new Promise((resolve, reject) => {
      const closed = (code: number) => reject(new Error(`stream closed with ${code}`))
      this.socket.once('close', closed)
      this.#waiting.push({
        accept,
        resolve: (message) => {
          this.socket.removeListener('close', closed)
          resolve(message)
        },
      })
    })
  }

  /** Detections of a camera that come from now on. */
  async detections(cameraId: string, count = 1) {
    const found: Extract<ServerMessage, { type: 'detections' }>[] = []
    while (found.length < count) {
      const message = await this.next((m) => m.type === 'detections' && m.cameraId === cameraId)
      if (message.type === 'detections') found.push(message)
    }
    return found
  }

  async closed(): Promise<number> {
    if (this.socket.readyState === WebSocket.CLOSED) throw new Error('closed before it was waited for')
    const [code] = (await once(this.socket, 'close')) as [number]
    return code
  }

  close(): void {
    this.socket.terminate()
  }

  /** Calls for every message from now on. */
  onMessage(listener: (message: ServerMessage) => void): void {
    this.#listeners.push(listener)
  }

  #received(message: ServerMessage): void {
    this.messages.push(message)
    for (const listener of this.#listeners) listener(message)
    const done = this.#waiting.filter((waiting) => waiting.accept(message))
    this.#waiting = this.#waiting.filter((waiting) => !done.includes(waiting))
    for (const waiting of done) waiting.resolve(message)
  }
}
