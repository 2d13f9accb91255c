import { InferenceFailedError } from '../../../inference/errors.js'
import { Instance } from '../../../inference/instance.js'
import { entryPath } from '../../../lifecycle/entry.js'
import { nowMs } from '../../../lifecycle/clock.js'
import type { BackendInstance, BatchResult, Execution } from '../../backend.js'
import { ServingError } from '../../serving-error.js'
import type { Tensor } from '../../tensor.js'
import type { OnnxAnswer, OnnxJob, OnnxLoad, OnnxReady } from './onnx-protocol.js'
import { packInputs } from './pack-inputs.js'
import { splitOutputs } from './split-outputs.js'
import { isUtf8Tensor } from './strings.js'

/** Longest an ended model is waited for; a run cannot be cut short. */
const closeMs = 10_000

/** A thread with a session, seen from the loop that serves requests. */
export class OnnxInstance implements BackendInstance {
  readonly exited: Promise<Error>
  readonly #instance: Instance<OnnxLoad, OnnxReady, OnnxJob, OnnxAnswer>

  private constructor(
    name: string,
    /** Whether the model has a batch dimension. */
    readonly batched: boolean,
    entry: string,
  ) {
    let exit: (error: Error) => void
    this.exited = new Promise((resolve) => (exit = resolve))
    this.#instance = new Instance(name, entry, (error) => exit(error))
  }

  /** @throws RemoteError, WorkerExitedError */
  static async start(
    name: string,
    batched: boolean,
    load: OnnxLoad,
    entry = entryPath(import.meta.url, './onnx-worker.js'),
  ): Promise<Readonly<{ instance: OnnxInstance; ready: OnnxReady }>> {
    const instance = new OnnxInstance(name, batched, entry)
    try {
      return { instance, ready: await instance.#instance.load(load) }
    } catch (error) {
      await instance.close()
      throw error
    }
  }

  get thread(): number | undefined {
    return this.#instance.thread
  }

  async execute(batch: readonly Execution[]): Promise<BatchResult> {
    const startedMs = nowMs()
    const problems = batch.map(problemOf)
    const sound = problems.every((problem) => problem === undefined)
      ? batch
      : batch.filter((_, index) => problems[index] === undefined)
    if (sound.length === 0) return { results: problems as Error[], times: noTime }
    const { inputs, transfer, copiedBytes } = packInputs(sound, this.batched)
    const answer = await this.#run({ inputs, outputs: wantedOutputs(sound) }, transfer)
    const shares = splitOutputs(
      answer.outputs,
      sound.map((execution) => execution.batchSize),
      this.batched,
    )
    return {
      results: placed(problems, shares),
      times: {
        computeInputNs: (answer.runStartedMs - startedMs) * 1e6,
        computeInferNs: (answer.runEndedMs - answer.runStartedMs) * 1e6,
        computeOutputNs: (nowMs() - answer.runEndedMs) * 1e6,
        copiedBytes: copiedBytes + answer.copiedBytes,
      },
    }
  }

  async close(): Promise<void> {
    await this.#instance.stop(closeMs)
  }

  async #run(job: OnnxJob, transfer: readonly ArrayBuffer[]): Promise<OnnxAnswer> {
    try {
      return await this.#instance.run(job, transfer)
    } catch (error) {
      if (!(error instanceof InferenceFailedError)) throw error
      throw new ServingError('INTERNAL', `onnx runtime error: ${error.record.message}`, 'BACKEND', error)
    }
  }
}

const noTime = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }

/** What is wrong with one request alone. */
function problemOf({ inputs }: Execution): Error | undefined {
  for (const { name, datatype, data } of inputs.values())
    if (datatype === 'BYTES' && !isUtf8Tensor(data))
      return new ServingError('INVALID_ARG', `input '${name}' has an element that is not UTF-8`)
  return undefined
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
