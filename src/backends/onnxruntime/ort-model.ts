import type ort from './onnxruntime.js'
import type { CardMemory } from './card-memory.js'
import type { ExecutionProvider } from '../../config/inference.js'
import type { BatchSizes } from '../../runtime/batch-sizes.js'
import { type OrtSessionOptions, runFailure } from './ort-session.js'
import type { ProviderNote } from './provider-notes.js'
import type { OrtSession, Tensors } from './session.js'
import { Sessions } from './sessions.js'
import { datatypeOfOnnx, isArrayDatatype } from '../../tensors/element-type.js'
import { giveBack } from '../../tensors/tensor-buffers.js'
import { emptyTensor } from './ort-tensor.js'

export type WantedOutputs = Readonly<{
  /** Others are not copied out. */
  names: readonly string[]
  /** Their shape follows from the shape of the input, even where the file does not say so. */
  sizeIsKnown: boolean
}>

export type Feed = Readonly<{ name: string; tensor: ort.Tensor }>

/**
 * The sessions of a model and the buffers their outputs are written to.
 *
 * Outputs whose size follows from the batch size are allocated once and written over by the next run: reading them must end
 * before.
 */
export class OrtModel {
  readonly #preallocated = new Map<number, Record<string, ort.Tensor>>()

  private constructor(
    readonly sessions: Sessions,
    readonly options: OrtSessionOptions,
    readonly wanted: WantedOutputs,
    /** Why each provider before the one that runs it does not. */
    readonly notes: readonly ProviderNote[],
  ) {}

  /**
   * @param sizes - of batches, where the provider takes one shape; undefined: the model takes no batches.
   * @param memory - of the card, where what the model takes of it is to be known.
   */
  static async open(
    options: OrtSessionOptions,
    wanted: WantedOutputs,
    sizes?: BatchSizes,
    memory?: CardMemory,
  ): Promise<OrtModel> {
    const sessions = await Sessions.open(options, sizes, memory)
    return new OrtModel(sessions, options, wanted, sessions.notes)
  }

  get provider(): ExecutionProvider {
    return this.sessions.provider
  }

  get session(): OrtSession {
    return this.sessions.first
  }

  /** @param batchSize - of `sessions.rowsFor`. @returns the wanted outputs by name, valid until the next run. */
  async run(inputs: readonly Feed[], batchSize: number): Promise<Tensors> {
    const feeds = Object.fromEntries(inputs.map(({ name, tensor }) => [name, tensor]))
    const reused = this.#preallocated.get(batchSize)
    if (reused !== undefined) {
      const copies = await this.#run(feeds, reused, batchSize)
      giveBack(this.wanted.names.flatMap((name) => besides(reused[name], copies[name])))
      return reused
    }
    const outputs = await this.#run(feeds, this.wanted.names, batchSize)
    const isKnown = this.wanted.sizeIsKnown || this.wanted.names.every((name) => this.#isFixed(name))
    if (isKnown && this.wanted.names.every((name) => isReusable(outputs[name]?.type)))
      this.#preallocated.set(
        batchSize,
        Object.fromEntries(
          this.wanted.names.map((name) => [name, this.#emptyLike(outputs[name], batchSize)]),
        ),
      )
    return outputs
  }

  /** A run whose shapes may be others than those of all that follow, but for the size of the batch. */
  async runOnce(inputs: readonly Feed[], batchSize: number): Promise<void> {
    const feeds = Object.fromEntries(inputs.map(({ name, tensor }) => [name, tensor]))
    await this.#run(feeds, this.wanted.names, batchSize)
  }

  /** The same model, opened anew on its provider: it has seen no shape. This one is released. */
  async reopened(): Promise<OrtModel> {
    await this.release()
    const options = { ...this.options, providers: [this.provider] }
    const sessions = await Sessions.open(options, this.sessions.sizes)
    return new OrtModel(sessions, options, this.wanted, this.notes)
  }

  async #run(
    feeds: Record<string, ort.Tensor>,
    fetches: readonly string[] | Tensors,
    batchSize: number,
  ): Promise<Tensors> {
    try {
      return await this.sessions.of(batchSize).run(feeds, fetches)
    } catch (error) {
      throw runFailure(error, this.provider, this.options)
    }
  }

  async release(): Promise<void> {
    this.#preallocated.clear()
    await this.sessions.release()
  }

  /** Memory for an input of batches of a size; that which the device reads by itself where there is such. */
  memory(batchSize: number, bytes: number): ArrayBuffer {
    return this.sessions.of(batchSize).memory?.(bytes) ?? new ArrayBuffer(bytes)
  }

  #emptyLike(tensor: ort.Tensor | undefined, batchSize: number): ort.Tensor {
    if (tensor === undefined) throw new Error('the run left out an output it was asked for')
    return emptyTensor(tensor.type, tensor.dims, (bytes) => this.memory(batchSize, bytes))
  }

  /** Whether the output's shape follows from the batch size alone. */
  #isFixed(name: string): boolean {
    const metadata = this.session.outputMetadata.find((output) => output.name === name)
    if (metadata?.isTensor !== true || !isReusable(metadata.type)) return false
    return metadata.shape.slice(1).every((size) => typeof size === 'number')
  }
}

/** The buffer that the binding (1.30) copies an output into, although it was given one. */
function besides(given: ort.Tensor | undefined, made: ort.Tensor | undefined): readonly ArrayBuffer[] {
  const buffer = bufferOf(made)
  return buffer === undefined || buffer === bufferOf(given) ? [] : [buffer]
}

function bufferOf(tensor: ort.Tensor | undefined): ArrayBuffer | undefined {
  return (tensor?.data as Uint8Array<ArrayBuffer> | undefined)?.buffer
}

/** Its elements lie in memory that another run can write over. */
function isReusable(type = ''): boolean {
  return isArrayDatatype(datatypeOfOnnx(type))
}
