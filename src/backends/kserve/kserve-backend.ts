import { ModelInvalidError } from '../../repository/errors.js'
import type { ModelConfig } from '../../repository/model-config.js'
import { nowMs } from '../../lifecycle/clock.js'
import { inTurns } from '../../lifecycle/in-turns.js'
import type {
  Backend,
  BackendContext,
  BackendInstance,
  BatchResult,
  Execution,
  OpenedModel,
} from '../../runtime/backend.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { Tensor, TensorSpec } from '../../tensors/tensor.js'
import { movableTensors } from '../../tensors/tensor-buffers.js'
import { configTensors, specsOf } from '../config-tensors.js'
import { eachAlone } from '../each-alone.js'
import { splitOutputs } from '../onnxruntime/split-outputs.js'
import { packInputs } from '../pack-inputs.js'
import { kserveSettings } from './kserve-settings.js'
import { KserveThread, type KserveThreadOptions } from './kserve-thread.js'

/** Calls to a remote server wait without using a core, so there may be many. */
const defaultInstances = 16

/**
 * Runs a model on another server that speaks KServe v2 over gRPC, Triton among them. A thread of each model writes requests and reads
 * answers, so that the loop that serves all clients never waits for one of them.
 */
export class KserveBackend implements Backend {
  readonly name = 'kserve'

  /**
   * @param maxResponseBytes - most that the outputs of an answer may have, all together; absent: any.
   * @param entry - path of the entry of the threads; tests have one of their own.
   */
  constructor(
    readonly maxResponseBytes?: number,
    readonly entry?: string,
  ) {}

  async open(context: BackendContext): Promise<OpenedModel> {
    const { log } = context
    const settings = kserveSettings(context, this.maxResponseBytes)
    const threads = new Threads({ settings, log, entry: this.entry })
    try {
      return await opened(context, threads)
    } catch (error) {
      await threads.close()
      throw error
    }
  }
}

/** A configuration that lists all tensors needs no answer from the server yet. */
async function opened(context: BackendContext, threads: Threads): Promise<OpenedModel> {
  const { config } = context
  // Before the first instance is: what the thread takes is taken once for all of them.
  const thread = await threads.current()
  const listed = { inputs: specsOf(config, config.input), outputs: specsOf(config, config.output) }
  if (listed.inputs.length > 0 && listed.outputs.length > 0) return new RemoteModel(config, listed, threads)
  return described(context, thread, threads)
}

async function described(
  { name, config }: BackendContext,
  thread: KserveThread,
  threads: Threads,
): Promise<OpenedModel> {
  try {
    const { maxBatchSize, ...tensors } = await thread.describe()
    return new RemoteModel(
      { ...config, max_batch_size: config.max_batch_size ?? maxBatchSize },
      tensors,
      threads,
    )
  } catch (error) {
    throw new ModelInvalidError(
      `model "${name}": ${error instanceof Error ? error.message : String(error)}`,
      'Start the remote server first, or list input and output in config.pbtxt.',
      error,
    )
  }
}

/** The thread of a model: one at a time, and another once that has ended and an instance starts again. */
class Threads {
  #current: Promise<KserveThread> | undefined
  #closed = false

  constructor(readonly options: KserveThreadOptions) {}

  /** @throws as {@link KserveThread.start} */
  current(): Promise<KserveThread> {
    this.#current ??= this.#start()
    return this.#current
  }

  /** Idempotent, never rejects. */
  async close(): Promise<void> {
    this.#closed = true
    const thread = await this.#current?.catch(() => undefined)
    await thread?.close()
  }

  async #start(): Promise<KserveThread> {
    try {
      const thread = await KserveThread.start(this.options)
      if (this.#closed) void thread.close()
      void thread.exited.then(() => (this.#current = undefined))
      return thread
    } catch (error) {
      this.#current = undefined
      throw error
    }
  }
}

class RemoteModel implements OpenedModel {
  readonly platform = 'kserve'
  readonly config: ModelConfig
  readonly inputs: readonly TensorSpec[]
  readonly outputs: readonly TensorSpec[]

  constructor(
    config: ModelConfig,
    tensors: Readonly<{ inputs: readonly TensorSpec[]; outputs: readonly TensorSpec[] }>,
    readonly threads: Threads,
  ) {
    this.inputs = tensors.inputs
    this.outputs = tensors.outputs
    const groups =
      config.instance_group.length > 0
        ? config.instance_group
        : [
            {
              kind: 'KIND_CPU' as const,
              count: defaultInstances,
              gpus: [],
              profile: [],
              secondary_devices: [],
            },
          ]
    this.config = { ...configTensors(config, 'kserve', tensors), instance_group: groups }
  }

  async start(): Promise<BackendInstance> {
    return new RemoteInstance(await this.threads.current(), (this.config.max_batch_size ?? 0) > 0)
  }

  close(): Promise<void> {
    return this.threads.close()
  }
}

/** A place for one request at a time in the thread of the model. */
class RemoteInstance implements BackendInstance {
  readonly exited: Promise<Error>

  constructor(
    readonly caller: KserveThread,
    /** Whether the model has a batch dimension. */
    readonly batched: boolean,
  ) {
    this.exited = caller.exited
  }

  get thread(): number | undefined {
    return this.caller.thread
  }

  /** A batch is one request; when the server refuses it, each of its requests goes alone, so that one does not fail the others. */
  async execute(batch: readonly Execution[]): Promise<BatchResult> {
    const alone = () => eachAlone(batch, nowMs, (execution) => this.#infer([execution]))
    const isOne = this.batched && batch.length > 1 && batch.every(({ sequence }) => sequence === undefined)
    if (!isOne) return alone()
    try {
      return await this.#together(batch)
    } catch (error) {
      if (isAnswered(error)) return alone()
      throw error
    }
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  async #together(batch: readonly Execution[]): Promise<BatchResult> {
    const beganMs = nowMs()
    const outputs = await this.#infer(batch.map(kept))
    const endedMs = nowMs()
    const sizes = batch.map(({ batchSize }) => batchSize)
    const results = await inTurns(splitOutputs(outputs, sizes, true))
    return {
      results,
      times: {
        computeInputNs: 0,
        computeInferNs: Math.round((endedMs - beganMs) * 1e6),
        computeOutputNs: Math.round((nowMs() - endedMs) * 1e6),
      },
    }
  }

  /** Several go as one. */
  async #infer(executions: readonly Execution[]): Promise<readonly Tensor[]> {
    const [first] = executions
    const { inputs: packed, transfer } = await packInputs(executions, this.batched)
    const inputs = packed.map(({ name, shape, parts: [data = new Uint8Array()] }) => ({
      name,
      datatype: first!.inputs.get(name)!.datatype,
      shape,
      data,
    }))
    const ended = new AbortController()
    const asked = {
      inputs,
      outputs: [...new Set(executions.flatMap(({ outputs: wanted }) => wanted))],
      sequence: first!.sequence,
    }
    const signals = executions.map(({ signal }) => signal)
    try {
      const { outputs, message } = await this.caller.infer(
        asked,
        transfer,
        whenAllAbort(signals, ended.signal),
      )
      return movableTensors(outputs, message ?? new Uint8Array())
    } finally {
      ended.abort()
    }
  }
}

/** With inputs that are copied, so that they are still there for a second try. */
function kept(execution: Execution): Execution {
  const inputs = [...execution.inputs].map(([name, { movable: _, ...tensor }]) => [name, tensor] as const)
  return { ...execution, inputs: new Map(inputs) }
}

/** Whether the server was reached, and has no use for the request as it is. */
function isAnswered(error: unknown): boolean {
  return error instanceof ServingError && error.status !== 'UNAVAILABLE' && error.status !== 'CANCELLED'
}

/** Aborts with the last of them. @param ended - aborts when nobody listens any more: one signal may be that of many requests */
function whenAllAbort(
  signals: readonly (AbortSignal | undefined)[],
  ended: AbortSignal,
): AbortSignal | undefined {
  const known = signals.filter((signal) => signal !== undefined)
  const [first] = known
  if (known.length < signals.length) return undefined
  if (known.length === 1) return first
  const all = new AbortController()
  let left = known.length
  const one = () => {
    left -= 1
    if (left === 0) all.abort()
  }
  for (const signal of known)
    if (signal.aborted) one()
    else signal.addEventListener('abort', one, { once: true, signal: ended })
  return all.signal
}
