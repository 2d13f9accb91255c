import { deviceFailureIn, InferenceFailedError } from '../../runtime/errors.js'
import { Instance } from '../../runtime/instance.js'
import { entryPath } from '../../lifecycle/entry.js'
import { nowMs } from '../../lifecycle/clock.js'
import { atOnce, inTurns } from '../../lifecycle/in-turns.js'
import type { BackendInstance, BatchResult, Execution } from '../../runtime/backend.js'
import type { SizeCost } from '../../runtime/batch-sizes.js'
import type { InstanceSizes } from '../../runtime/instances/slot.js'
import { InternalError } from '../../errors.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { Tensor } from '../../tensors/tensor.js'
import { packInputs } from '../pack-inputs.js'
import type { OnnxAnswer, OnnxJob, OnnxLoad, OnnxReady } from './onnx-protocol.js'
import { splitOutputs } from './split-outputs.js'
import { type StringFault, stringFault } from './strings.js'

/** Longest an ended model is waited for; a run cannot be cut short. */
const closeMs = 10_000

/** A thread with a session, seen from the loop that serves requests. */
export class OnnxInstance implements BackendInstance {
  readonly #instance: Instance<OnnxLoad, OnnxReady, OnnxJob, OnnxAnswer>
  /** Those that can be warmed; absent: batches run as they come. */
  sizes: InstanceSizes | undefined

  private constructor(
    name: string,
    /** Whether the model has a batch dimension. */
    readonly batched: boolean,
    entry: string,
    onBegan?: (thread: number) => void,
    readonly onDeviceFailed?: (reason: string) => void,
  ) {
    this.#instance = new Instance(name, entry, onBegan)
  }

  /**
   * @param onBegan - called with the number of its thread.
   * @param onDeviceFailed - nothing runs any more on its GPU in this process; called with each run that says so.
   * @throws RemoteError, WorkerExitedError
   */
  static async start(
    name: string,
    batched: boolean,
    load: OnnxLoad,
    entry = entryPath(import.meta.url, './onnx-worker.js'),
    onBegan?: (thread: number) => void,
    onDeviceFailed?: (reason: string) => void,
  ): Promise<Readonly<{ instance: OnnxInstance; ready: OnnxReady }>> {
    const instance = new OnnxInstance(name, batched, entry, onBegan, onDeviceFailed)
    try {
      return { instance, ready: await instance.#instance.load(load) }
    } catch (error) {
      await instance.close()
      throw error
    }
  }

  get exited(): Promise<Error> {
    return this.#instance.exited
  }

  get thread(): number | undefined {
    return this.#instance.thread
  }

  async execute(batch: readonly Execution[]): Promise<BatchResult> {
    const startedMs = nowMs()
    const problems = await problemsOf(batch)
    const sound = problems.every((problem) => problem === undefined)
      ? batch
      : batch.filter((_, index) => problems[index] === undefined)
    if (sound.length === 0) return { results: problems as Error[], times: noTime }
    const { inputs, transfer, copiedBytes } = await packInputs(sound, this.batched)
    const answer = await this.#run({ inputs, outputs: wantedOutputs(sound) }, transfer)
    const sizes = sound.map((execution) => execution.batchSize)
    const splitting = splitOutputs(answer.outputs, sizes, this.batched)
    const isLong = answer.outputs.some(({ datatype, data }) => datatype === 'BYTES' && isLongText(data))
    const shares = isLong ? await inTurns(splitting) : atOnce(splitting)
    return {
      results: placed(problems, shares),
      times: {
        computeInputNs: (answer.runStartedMs - startedMs) * 1e6,
        computeInferNs: (answer.runEndedMs - answer.runStartedMs) * 1e6,
        computeOutputNs: (nowMs() - answer.runEndedMs) * 1e6,
        copiedBytes: copiedBytes + answer.copiedBytes,
        shapes: answer.shapes,
      },
    }
  }

  /** Runs a batch of a size for the first time, all rows of which are the one of the execution. @throws what the run throws */
  async warm(one: Execution, size: number): Promise<SizeCost> {
    const { inputs, transfer } = await packInputs([one], this.batched)
    const { sizeCost } = await this.#run({ inputs, outputs: one.outputs, warms: size }, transfer)
    if (sizeCost === undefined) throw new InternalError('a model that was to warm a size did not')
    return sizeCost
  }

  async close(): Promise<void> {
    await this.#instance.stop(closeMs)
  }

  async #run(job: OnnxJob, transfer: readonly ArrayBuffer[]): Promise<OnnxAnswer> {
    try {
      return await this.#instance.run(job, transfer)
    } catch (error) {
      if (!(error instanceof InferenceFailedError)) throw error
      const failure = deviceFailureIn(error)
      if (failure !== undefined) this.onDeviceFailed?.(failure.message)
      throw new ServingError('INTERNAL', `onnx runtime error: ${error.record.message}`, 'BACKEND', error)
    }
  }
}

const noTime = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }

/** More text than that is looked at in turns with what else the loop does. */
const mostTextBytes = 64 * 1024

function isLongText({ byteLength }: Uint8Array): boolean {
  return byteLength > mostTextBytes
}

/** What is wrong with one request alone. */
async function problemsOf(batch: readonly Execution[]): Promise<(Error | undefined)[]> {
  const problems: (Error | undefined)[] = []
  for (const { inputs } of batch) {
    let problem: Error | undefined
    for (const { name, datatype, data } of inputs.values()) {
      if (problem !== undefined || datatype !== 'BYTES') continue
      const fault = await faultOf(data)
      if (fault !== undefined)
        problem = new ServingError('INVALID_ARG', `input '${name}' has an element that ${fault}`)
    }
    problems.push(problem)
  }
  return problems
}

function faultOf(data: Uint8Array): StringFault | undefined | Promise<StringFault | undefined> {
  return isLongText(data) ? inTurns(stringFault(data)) : atOnce(stringFault(data))
}

function wantedOutputs(batch: readonly Execution[]): readonly string[] {
  if (batch.length === 1) return [...new Set(batch[0]!.outputs)]
  return [...new Set(batch.flatMap((execution) => execution.outputs))]
}

/** Puts the answers of the requests that ran where they belong among those that did not. */
function placed(
  problems: readonly (Error | undefined)[],
  shares: readonly (readonly Tensor[])[],
): readonly (readonly Tensor[] | Error)[] {
  let next = 0
  return problems.map((problem) => problem ?? shares[next++]!)
}
