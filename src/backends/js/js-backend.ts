import { numberParameter } from '../../repository/parameter-choice.js'
import { ModelConfigError } from '../../repository/errors.js'
import type { ModelConfig } from '../../repository/model-config.js'
import { modelFileIn } from '../../repository/model-definition.js'
import { nowMs } from '../../lifecycle/clock.js'
import { entryPath } from '../../lifecycle/entry.js'
import type {
  Backend,
  BackendContext,
  BackendInstance,
  BatchResult,
  Execution,
  OpenedModel,
} from '../../runtime/backend.js'
import { elementBytes } from '../../tensors/element-type.js'
import { transferable } from '../../tensors/tensor-buffers.js'
import type { Tensor, TensorSpec } from '../../tensors/tensor.js'
import { ServingError } from '../../tensors/serving-error.js'
import { configTensors, specsOf } from '../config-tensors.js'
import { eachAlone } from '../each-alone.js'
import { WorkerInstance } from '../worker-instance.js'
import type { JsAnswer, JsJob, JsLoad, JsTensorMessage } from './js-protocol.js'

/** Below the five minutes after which a run that does not end ends the process. */
const mostTimeoutMs = 240_000

/** Runs models that are JavaScript files of the user's own, each instance in a worker thread. */
export class JsBackend implements Backend {
  readonly name = 'js'

  /** @param allowed - `models.allowJsBackends`: such a model has all the rights of the service. */
  constructor(readonly allowed: boolean) {}

  open(context: BackendContext): Promise<OpenedModel> {
    return Promise.resolve().then(() => this.#open(context))
  }

  #open(context: BackendContext): OpenedModel {
    const { name, config } = context
    if (!this.allowed)
      throw new ModelConfigError(
        `model "${name}" is code of its own (backend "js"), which is not allowed`,
        'Set models.allowJsBackends to true if you trust everyone who can write to the model repository.',
      )
    if (config.input.length === 0 || config.output.length === 0)
      throw new ModelConfigError(
        `model "${name}": a model with backend "js" must list its input and output`,
        'Add them to config.pbtxt.',
      )
    const timeoutMs = numberParameter(name, config, 'gantry.timeout_ms', 30_000, {
      min: 1,
      max: mostTimeoutMs,
    })
    const file = modelFileIn(context.versionDir, { ...config, name }, ['model.js', 'model.mjs'])
    return new OpenedJsModel(context, file, timeoutMs)
  }
}

class OpenedJsModel implements OpenedModel {
  readonly platform = 'js'
  readonly config: ModelConfig
  readonly inputs: readonly TensorSpec[]
  readonly outputs: readonly TensorSpec[]

  constructor(
    readonly context: BackendContext,
    readonly file: string,
    readonly timeoutMs: number,
  ) {
    this.inputs = specsOf(context.config, context.config.input)
    this.outputs = specsOf(context.config, context.config.output)
    this.config = configTensors(context.config, 'js', this)
  }

  async start(index: number, onBegan?: (thread: number) => void): Promise<BackendInstance> {
    const { name, version, versionDir, config } = this.context
    const parameters = Object.fromEntries(
      Object.entries(config.parameters).map(([key, { string_value = '' }]) => [key, string_value]),
    )
    const { inputs, outputs } = this
    const load: JsLoad = {
      file: this.file,
      context: { name, version, versionDir, parameters, inputs, outputs },
    }
    const entry = entryPath(import.meta.url, './js-worker.js')
    return new JsInstance(
      name,
      outputs,
      this.timeoutMs,
      await WorkerInstance.start<JsLoad, JsJob, JsAnswer>(`${name}#${index}`, entry, load, onBegan),
    )
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

/** A run that does not end in time ends with its thread; another instance takes its place. */
class JsInstance implements BackendInstance {
  readonly exited: Promise<Error>
  /** Resolves when the request that was sent last has ended. */
  #last: Promise<void> = Promise.resolve()

  constructor(
    readonly model: string,
    readonly specs: readonly TensorSpec[],
    readonly timeoutMs: number,
    readonly worker: WorkerInstance<JsLoad, JsJob, JsAnswer>,
  ) {
    this.exited = worker.exited
  }

  get thread(): number | undefined {
    return this.worker.thread
  }

  execute(batch: readonly Execution[]): Promise<BatchResult> {
    return eachAlone(batch, nowMs, (execution) => this.#run(execution))
  }

  async close(): Promise<void> {
    await this.worker.close()
    this.worker.terminate()
  }

  async #run({ inputs, outputs: wanted, batchSize }: Execution): Promise<readonly Tensor[]> {
    const sent: JsTensorMessage[] = []
    for (const [name, tensor] of inputs) {
      const { datatype, shape } = tensor
      sent.push({ name, datatype, shape, buffer: (await transferable(tensor)).buffer })
    }
    const { outputs } = await this.#inTime(() =>
      this.worker.run(
        { inputs: sent, outputs: wanted, batchSize },
        sent.map(({ buffer }) => buffer),
      ),
    )
    return outputs.map(({ name, datatype, shape, buffer }): Tensor => {
      const tensor = { name, datatype, shape, data: new Uint8Array(buffer), movable: true } as const
      this.#check(tensor)
      return tensor
    })
  }

  /** The thread runs one request at a time, so each has its time from when the one before it has ended. */
  #inTime(run: () => Promise<JsAnswer>): Promise<JsAnswer> {
    const answer = run()
    answer.catch(ignore)
    const timed = this.#last.then(() => this.#limited(answer))
    this.#last = timed.then(ignore, ignore)
    return timed
  }

  async #limited(answer: Promise<JsAnswer>): Promise<JsAnswer> {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.worker.terminate()
    }, this.timeoutMs)
    try {
      return await answer
    } catch (error) {
      if (!isLate) throw error
      throw new ServingError(
        'INTERNAL',
        `model '${this.model}' did not answer within ${this.timeoutMs} ms, and was started again`,
        'BACKEND',
        error,
      )
    } finally {
      clearTimeout(timer)
    }
  }

  /** What a user's code answers is checked as what a client sends is. */
  #check({ name, datatype, shape, data }: Tensor): void {
    const elements = shape.reduce((product, size) => product * size, 1)
    const wanted = this.specs.find((spec) => spec.name === name)?.shape ?? []
    const fits =
      wanted.length === shape.length && wanted.every((size, axis) => size === -1 || size === shape[axis])
    const full = datatype === 'BYTES' || data.byteLength === elements * elementBytes(datatype)
    if (fits && full) return
    throw new ServingError(
      'INTERNAL',
      `model '${this.model}' answered output '${name}' with ${data.byteLength} bytes of shape [${shape.join(',')}], but ${datatype} [${wanted.join(',')}] is configured`,
      'BACKEND',
    )
  }
}

function ignore(): void {}
