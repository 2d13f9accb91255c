import ort from './onnxruntime.js'
import { InternalError } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import { ortTensor } from './ort-tensor.js'
import { runFailure } from './ort-session.js'
import { datatypeOfOnnx, isArrayDatatype, type OnnxType } from '../../tensors/element-type.js'
import { elementsOf, isAligned } from '../../tensors/elements.js'
import { giveBack } from '../../tensors/tensor-buffers.js'
import type { Outgoing, WorkerBackend } from '../../runtime/worker-runtime.js'
import type { PackedInput } from '../pack-inputs.js'
import { BatchPadding } from './batch-padding.js'
import { CardMemory } from './card-memory.js'
import type { OnnxAnswer, OnnxJob, OnnxJobOutput, OnnxLoad, OnnxReady } from './onnx-protocol.js'
import { KnownShapes } from './known-shapes.js'
import { Sessions } from './sessions.js'
import { SizeRuns } from './size-runs.js'
import { decodeStrings, encodeStrings } from './strings.js'

/** An instance of an ONNX model in a thread of its own. */
export class OnnxSession implements WorkerBackend<OnnxLoad, OnnxReady, OnnxJob, OnnxAnswer> {
  #sessions: Sessions | undefined
  /** Where a session takes one size of batch. */
  #sizeRuns: SizeRuns | undefined
  #explain: (error: unknown) => unknown = (error) => error
  #inputTypes: OnnxLoad['inputTypes'] = {}
  #scalars: OnnxLoad['scalars'] = { inputs: [], outputs: {} }
  /** Where a session may see one shape only. */
  #padding: BatchPadding | undefined
  readonly #shapes = new KnownShapes()

  async load({ session, inputTypes, scalars, batchRows, measuresMemory }: OnnxLoad): Promise<OnnxReady> {
    const memory = measuresMemory ? new CardMemory(session.deviceId) : undefined
    this.#sessions = await Sessions.open(session, batchRows?.sizes, memory)
    const { provider, notes, sizes, leftOut } = this.#sessions
    this.#explain = (error) => runFailure(error, provider, session)
    this.#inputTypes = inputTypes
    this.#scalars = scalars
    if (sizes !== undefined && batchRows !== undefined) {
      this.#padding = new BatchPadding(batchRows.idle)
      this.#sizeRuns = new SizeRuns(this.#sessions, memory)
    }
    return { provider, notes, sizes, sizesLeftOut: leftOut }
  }

  /** The buffers of the inputs are given back when it ends. */
  async run(job: OnnxJob): Promise<Outgoing<OnnxAnswer>> {
    try {
      const { warms } = job
      return await (warms === undefined ? this.#run(job) : this.#warm(job, warms))
    } finally {
      giveBack(new Set(job.inputs.flatMap(({ parts }) => parts.map(({ buffer }) => buffer as ArrayBuffer))))
    }
  }

  /** @throws TensorShapeError for an output that has not a row for each of the batch, and what the run throws */
  async #warm(job: OnnxJob, size: number): Promise<Outgoing<OnnxAnswer>> {
    if (this.#sizeRuns === undefined)
      throw new InternalError('a session that takes any batch has no sizes to warm')
    const runStartedMs = nowMs()
    const sizeCost = await this.#sizeRuns.costOf(size, () => this.#run(job, size))
    const answer = {
      outputs: [],
      runStartedMs,
      runEndedMs: nowMs(),
      copiedBytes: 0,
      shapes: undefined,
      sizeCost,
    }
    return { result: answer, transfer: [] }
  }

  /** @param wanted - rows that the batch is filled up to; by default of a size that has run, unless none of these is large enough. */
  async #run(job: OnnxJob, wanted?: number): Promise<Outgoing<OnnxAnswer>> {
    let copiedBytes = 0
    const feeds: Record<string, ort.Tensor> = {}
    const sessions = this.#sessions!
    const sizeRuns = this.#sizeRuns
    const items = job.inputs[0]?.shape[0]
    const rows = wanted ?? sizeRuns?.rowsFor(items ?? 1) ?? sessions.rowsFor(items ?? 1)
    const shapes = this.#shapes.next(job.inputs, rows, sessions.sizes === undefined ? 0 : rows)
    for (const input of job.inputs) {
      const type = this.#inputTypes[input.name] ?? 'other'
      const whole = this.#padding?.fill(input, rows, type === 'string') ?? input
      const fed = toOrt(this.#scalars.inputs.includes(input.name) ? { ...whole, shape: [] } : whole, type)
      feeds[input.name] = fed.tensor
      copiedBytes += fed.copiedBytes + (whole === input ? 0 : bytesOf(input))
    }
    const runStartedMs = nowMs()
    const running = () => sessions.of(rows).run(feeds, job.outputs)
    const run = wanted !== undefined || sizeRuns === undefined ? running() : sizeRuns.run(rows, running)
    const results = await run.catch((error: unknown) => {
      throw this.#explain(error)
    })
    const runEndedMs = nowMs()
    const outputs = job.outputs.map((name) => {
      const given = fromOrt(name, results[name])
      const output = given.shape.length > 0 ? given : { ...given, shape: this.#scalars.outputs[name] ?? [] }
      return items === undefined ? output : (this.#padding?.cut(output, rows, items) ?? output)
    })
    return {
      result: { outputs, runStartedMs, runEndedMs, copiedBytes, shapes },
      transfer: [...new Set(outputs.map((output) => output.data.buffer as ArrayBuffer))],
    }
  }

  async release(): Promise<void> {
    await this.#sessions?.release()
    this.#sessions = undefined
  }
}

/** An input of a whole batch as ONNX Runtime takes it; copied where its parts do not lie together. */
export function toOrt(
  { shape, parts }: PackedInput,
  type: OnnxType,
): Readonly<{ tensor: ort.Tensor; copiedBytes: number }> {
  const dims = [...shape]
  if (type === 'string') {
    const strings = parts.length === 1 ? decodeStrings(parts[0]!) : parts.flatMap(decodeStrings)
    return { tensor: new ort.Tensor('string', strings, dims), copiedBytes: 0 }
  }
  const datatype = datatypeOfOnnx(type)
  if (!isArrayDatatype(datatype)) throw new TypeError(`there are no arrays of type ${type}`)
  const [only] = parts
  const whole = parts.length === 1 && only !== undefined && isAligned(datatype, only) ? only : gathered(parts)
  const elements = elementsOf(datatype, whole)
  return {
    tensor: ortTensor(type as ort.Tensor.Type, elements, dims),
    copiedBytes: whole === only ? 0 : whole.byteLength,
  }
}

function bytesOf({ parts }: PackedInput): number {
  return parts.reduce((sum, part) => sum + part.byteLength, 0)
}

function gathered(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.byteLength
  }
  return whole
}

function fromOrt(name: string, tensor: ort.Tensor | undefined): OnnxJobOutput {
  if (tensor === undefined) throw new Error(`the run left out output "${name}"`)
  const datatype = datatypeOfOnnx(tensor.type) ?? 'BYTES'
  const { data } = tensor
  return {
    name,
    datatype,
    shape: tensor.dims,
    data: Array.isArray(data)
      ? encodeStrings(data)
      : new Uint8Array(
          (data as Uint8Array).buffer,
          (data as Uint8Array).byteOffset,
          (data as Uint8Array).byteLength,
        ),
  }
}
