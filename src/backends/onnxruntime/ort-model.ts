import type ort from './onnxruntime.js'
import type { ExecutionProvider } from '../../config/inference.js'
import { openOrtSession, type OrtSessionOptions, runFailure } from './ort-session.js'
import type { ProviderNote } from './provider-notes.js'
import { datatypeOfOnnx, isArrayDatatype } from '../../tensors/element-type.js'
import { emptyTensor } from './ort-tensor.js'

export type WantedOutputs = Readonly<{
  /** Others are not copied out. */
  names: readonly string[]
  /** Their shape follows from the shape of the input, even where the file does not say so. */
  sizeIsKnown: boolean
}>

export type Feed = Readonly<{ name: string; tensor: ort.Tensor }>

/**
 * One session and the buffers its outputs are written to.
 *
 * Outputs whose size follows from the batch size are allocated once and written over by the next run: reading them must end
 * before.
 */
export class OrtModel {
  readonly #preallocated = new Map<number, Record<string, ort.Tensor>>()

  private constructor(
    readonly session: ort.InferenceSession,
    readonly provider: ExecutionProvider,
    readonly notes: readonly ProviderNote[],
    readonly deviceId: number,
    readonly wanted: WantedOutputs,
  ) {}

  static async open(options: OrtSessionOptions, wanted: WantedOutputs): Promise<OrtModel> {
    const { session, provider, notes } = await openOrtSession(options)
    return new OrtModel(session, provider, notes, options.deviceId, wanted)
  }

  /** @returns the wanted outputs by name, valid until the next run. */
  async run(inputs: readonly Feed[], batchSize: number): Promise<Readonly<Record<string, ort.Tensor>>> {
    const feeds = Object.fromEntries(inputs.map(({ name, tensor }) => [name, tensor]))
    const reused = this.#preallocated.get(batchSize)
    if (reused !== undefined) {
      await this.#run(feeds, reused)
      return reused
    }
    const outputs = await this.#run(feeds, this.wanted.names)
    const isKnown = this.wanted.sizeIsKnown || this.wanted.names.every((name) => this.#isFixed(name))
    if (isKnown && this.wanted.names.every((name) => isReusable(outputs[name]?.type)))
      this.#preallocated.set(
        batchSize,
        Object.fromEntries(this.wanted.names.map((name) => [name, emptyLike(outputs[name])])),
      )
    return outputs
  }

  /** A run whose shapes may be others than those of all that follow. */
  async runOnce(inputs: readonly Feed[]): Promise<void> {
    await this.#run(Object.fromEntries(inputs.map(({ name, tensor }) => [name, tensor])), this.wanted.names)
  }

  async #run(
    feeds: Record<string, ort.Tensor>,
    fetches: readonly string[] | Record<string, ort.Tensor>,
  ): Promise<Record<string, ort.Tensor>> {
    try {
      return await this.session.run(feeds, fetches)
    } catch (error) {
      throw runFailure(error, this.provider, this.deviceId)
    }
  }

  async release(): Promise<void> {
    this.#preallocated.clear()
    await this.session.release()
  }

  /** Whether the output's shape follows from the batch size alone. */
  #isFixed(name: string): boolean {
    const metadata = this.session.outputMetadata.find((output) => output.name === name)
    if (metadata?.isTensor !== true || !isReusable(metadata.type)) return false
    return metadata.shape.slice(1).every((size) => typeof size === 'number')
  }
}

/** Its elements lie in memory that another run can write over. */
function isReusable(type = ''): boolean {
  return isArrayDatatype(datatypeOfOnnx(type))
}

function emptyLike(tensor: ort.Tensor | undefined): ort.Tensor {
  if (tensor === undefined) throw new Error('the run left out an output it was asked for')
  return emptyTensor(tensor.type, tensor.dims)
}
