import type ort from '../onnxruntime.js'
import { giveBack } from '../../../tensors/tensor-buffers.js'
import type { OrtSession, Tensors } from '../session.js'
import type { Arena, DeviceMemory } from './device.js'
import { ModelValues } from './model-values.js'
import type { OrtApi } from './ort-api.js'
import { isNames, ReplayedRun } from './replayed-run.js'
import { madeValue, tensorOf, valueOver } from './tensors.js'

/** What a session is opened with; ONNX Runtime's own names and numbers. */
export type CSessionOptions = Readonly<{
  /** Path of its file, or its bytes. */
  model: string | Uint8Array
  /** Number of the GPU whose memory is asked for. */
  deviceId: number
  /** Adds providers and settings to an `OrtSessionOptions`. */
  prepare: (sessionOptions: number) => void
  /** Of each run, `memory.enable_memory_arena_shrinkage` for one. */
  runConfig: Readonly<Record<string, string>>
  /** Undefined: that of this process is all there is. */
  memory: DeviceMemory | undefined
  /** The first shape that comes is recorded and played back. */
  replays: boolean
}>

/** Numbers of the C API. */
const logErrors = 3
const arenaAllocator = 1
const defaultMemory = 0
/** A run that is neither recorded nor played back. */
const unrecorded = { gpu_graph_id: '-1' }

/** Sessions of this thread that nobody has released. */
const unreleased = new Set<CSession>()

/** A thread that ends without a release, after a load that failed for one, leaves nothing behind: nobody else knows of native memory. */
function releaseAtExit(): void {
  for (const session of unreleased) void session.release()
}

/** A session of the C API, in the thread that has opened it. */
export class CSession implements OrtSession {
  readonly inputMetadata: readonly ort.InferenceSession.ValueMetadata[]
  readonly outputMetadata: readonly ort.InferenceSession.ValueMetadata[]
  readonly #api: OrtApi
  readonly #opened: OpenedSession
  readonly #options: CSessionOptions
  /** Memory that the device reads by itself, by its buffer. */
  readonly #pinned = new Map<ArrayBufferLike, Readonly<{ value: number; address: number }>>()
  #replayed: ReplayedRun | undefined
  #released = false

  private constructor(api: OrtApi, opened: OpenedSession, options: CSessionOptions) {
    this.#api = api
    this.#opened = opened
    this.#options = options
    this.inputMetadata = opened.inputs.metadata
    this.outputMetadata = opened.outputs.metadata
  }

  /** @throws Error with what ONNX Runtime says; nothing is left behind then. */
  static open(api: OrtApi, options: CSessionOptions): CSession {
    const session = new CSession(api, new OpenedSession(api, options), options)
    if (process.listeners('exit').every((listener) => listener !== releaseAtExit))
      process.once('exit', releaseAtExit)
    unreleased.add(session)
    return session
  }

  async run(feeds: Tensors, fetches: readonly string[] | Tensors): Promise<Tensors> {
    this.#check(feeds, isNames(fetches) ? fetches : Object.keys(fetches))
    return this.#options.replays ? this.#replay(feeds, fetches) : this.#run(feeds, fetches)
  }

  memory(bytes: number): ArrayBuffer | undefined {
    if (this.#options.memory === undefined || bytes === 0) return undefined
    const { host } = this.#opened.arenas()!
    const value = madeValue(this.#api, host, { type: 'uint8', dims: [bytes] })
    const address = this.#api.made('GetTensorMutableData', value)
    const buffer = this.#api.native.viewOf(address, bytes)
    this.#pinned.set(buffer, { value, address })
    return buffer
  }

  release(): Promise<void> {
    if (this.#released) return Promise.resolve()
    this.#released = true
    unreleased.delete(this)
    this.#replayed?.release()
    // Nobody reads memory that is gone: its buffers are empty from here on.
    giveBack([...this.#pinned.keys()] as ArrayBuffer[])
    for (const { value } of this.#pinned.values()) this.#api.release('ReleaseValue', value)
    this.#pinned.clear()
    this.#opened.release()
    return Promise.resolve()
  }

  /** As the package for Node checks it. */
  #check(feeds: Tensors, wanted: readonly string[]): void {
    if (this.#released) throw new Error('the session is released')
    const { outputs } = this.#opened
    for (const { name } of this.inputMetadata)
      if (feeds[name] === undefined) throw new Error(`input '${name}' is missing in 'feeds'.`)
    for (const name of wanted)
      if (!outputs.has(name)) throw new RangeError(`'fetches' contains invalid output name: ${name}.`)
  }

  #replay(feeds: Tensors, fetches: readonly string[] | Tensors): Tensors {
    const { session, runOptions } = this.#opened
    const { memory } = this.#options
    const places = this.#opened.arenas()
    if (memory === undefined || places === undefined || !this.#isReplayable())
      return this.#run(feeds, fetches)
    if (this.#replayed === undefined) {
      const names = this.outputMetadata.map(({ name }) => name)
      // Which sizes the outputs have is known once it has run.
      const outputs = this.#run(this.#fed(feeds), names)
      this.#replayed = ReplayedRun.of(this.#api, session, memory, places, this.#fed(feeds), outputs)
    }
    if (!this.#replayed.takes(this.#fed(feeds))) return this.#run(feeds, fetches)
    return this.#replayed.run(session, runOptions, this.#fed(feeds), fetches, (data) => {
      const address = this.#pinned.get(data.buffer)?.address
      return address === undefined ? undefined : address + data.byteOffset
    })
  }

  /** Strings lie on no device. */
  #isReplayable(): boolean {
    return [...this.inputMetadata, ...this.outputMetadata].every(
      (value) => value.isTensor && value.type !== 'string',
    )
  }

  /** What of the feeds the model takes. */
  #fed(feeds: Tensors): Tensors {
    return Object.fromEntries(this.inputMetadata.map(({ name }) => [name, feeds[name]!]))
  }

  #run(feeds: Tensors, fetches: readonly string[] | Tensors): Tensors {
    const { session, plainOptions, inputs, outputs } = this.#opened
    const names = isNames(fetches) ? fetches : Object.keys(fetches)
    const given: Tensors = isNames(fetches) ? {} : fetches
    const fed = this.#fed(feeds)
    const values: number[] = []
    const keep = (value: number): bigint => {
      values.push(value)
      return BigInt(value)
    }
    try {
      const inputNames = Object.keys(fed)
      const inputValues = BigUint64Array.from(Object.values(fed), (tensor) => keep(this.#valueOver(tensor)))
      const outputValues = BigUint64Array.from(names, (name) =>
        given[name] === undefined ? 0n : keep(this.#valueOver(given[name])),
      )
      this.#api.call(
        'Run',
        session,
        plainOptions,
        inputs.cNames(inputNames),
        inputValues,
        inputNames.length,
        outputs.cNames(names),
        names.length,
        outputValues,
      )
      const made = names.flatMap((name, index) => (given[name] === undefined ? [outputValues[index]!] : []))
      values.push(...made.map(Number))
      return Object.fromEntries(
        names.map((name, index) => [name, given[name] ?? tensorOf(this.#api, Number(outputValues[index]))]),
      )
    } finally {
      for (const value of values) this.#api.release('ReleaseValue', value)
    }
  }

  /**
   * Memory that the device reads by itself is given as any other: the driver knows it by its address and copies it faster. Told what it is,
   * ONNX Runtime would not copy it at all, and operators would fetch it from the host element by element.
   */
  #valueOver(tensor: ort.Tensor): number {
    return valueOver(this.#api, tensor, this.#opened.hostInfo, this.#opened.allocator)
  }
}

/** Allocators of a session for a device and for the host's memory which that reads. */
type Arenas = Readonly<{ device: number; host: number }>

/** What native code holds for a session, and gives back in the reverse order. */
class OpenedSession {
  readonly session: number
  /** Of runs that are recorded and played back where that is asked for, and of those that never are. */
  readonly runOptions: number
  readonly plainOptions: number
  /** Memory of this process. */
  readonly hostInfo: number
  /** The usual one. */
  readonly allocator: number
  readonly inputs: ModelValues
  readonly outputs: ModelValues
  readonly #api: OrtApi
  readonly #options: CSessionOptions
  readonly #held: (() => void)[] = []
  #arenas: Arenas | undefined

  constructor(api: OrtApi, options: CSessionOptions) {
    this.#api = api
    this.#options = options
    try {
      const env = this.#hold('ReleaseEnv', api.made('CreateEnv', logErrors, 'gantry'))
      this.allocator = api.made('GetAllocatorWithDefaultOptions')
      this.hostInfo = this.#hold(
        'ReleaseMemoryInfo',
        api.made('CreateCpuMemoryInfo', arenaAllocator, defaultMemory),
      )
      const sessionOptions = this.#hold('ReleaseSessionOptions', api.made('CreateSessionOptions'))
      options.prepare(sessionOptions)
      this.session = this.#hold('ReleaseSession', createSession(api, env, options.model, sessionOptions))
      this.runOptions = this.#runOptions(options.runConfig)
      this.plainOptions = this.#runOptions(
        options.replays ? { ...options.runConfig, ...unrecorded } : options.runConfig,
      )
      this.inputs = this.#values('input')
      this.outputs = this.#values('output')
    } catch (error) {
      this.release()
      throw error
    }
  }

  /** Undefined where the session runs on the host. */
  arenas(): Arenas | undefined {
    const { memory } = this.#options
    if (memory === undefined) return undefined
    if (this.#arenas === undefined) {
      this.#arenas = { device: this.#arena(memory.device), host: this.#arena(memory.host) }
    }
    return this.#arenas
  }

  release(): void {
    for (const release of this.#held.splice(0).reverse()) release()
  }

  #values(side: 'input' | 'output'): ModelValues {
    const values = ModelValues.of(this.#api, this.session, side, this.allocator)
    this.#held.push(() => values.release(this.#api, this.allocator))
    return values
  }

  #runOptions(config: Readonly<Record<string, string>>): number {
    const made = this.#hold('ReleaseRunOptions', this.#api.made('CreateRunOptions'))
    for (const [key, value] of Object.entries(config)) this.#api.call('AddRunConfigEntry', made, key, value)
    return made
  }

  #arena({ name, allocator, memory }: Arena): number {
    const info = this.#hold(
      'ReleaseMemoryInfo',
      this.#api.made('CreateMemoryInfo', name, allocator, this.#options.deviceId, memory),
    )
    return this.#hold('ReleaseAllocator', this.#api.made('CreateAllocator', this.session, info))
  }

  #hold(release: Parameters<OrtApi['release']>[0], address: number): number {
    this.#held.push(() => this.#api.release(release, address))
    return address
  }
}

function createSession(api: OrtApi, env: number, model: string | Uint8Array, options: number): number {
  return typeof model === 'string'
    ? api.made('CreateSession', env, model, options)
    : api.made('CreateSessionFromArray', env, model, model.byteLength, options)
}
