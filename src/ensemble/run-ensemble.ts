import { atMost } from '../lifecycle/delay.js'
import type { InferRequest } from '../runtime/infer.js'
import type { LoadedModel } from '../runtime/loaded-model.js'
import { ServingError } from '../tensors/serving-error.js'
import type { Tensor, TensorSpec } from '../tensors/tensor.js'
import { traced } from '../runtime/tracing/request-trace.js'
import { type BatchReader, converted, type StepTensor } from './batch-conversion.js'
import { inPieces, joined, mostRows, withoutRows } from './box-rows.js'
import type { EnsemblePlan } from './ensemble-plan.js'
import type { StepGate } from './step-gate.js'
import type { PlannedStep } from './step-model.js'

/** Tensors of one request as they come into being, under the names of the ensemble. */
type Values = Map<string, StepTensor>

/**
 * Runs a request through the graph: each step starts when its inputs are there, side by side where it can. Steps that no wanted
 * output needs are left out, and so are those that are given no rows because there is no box: their outputs have none either. Of more
 * boxes than a model takes at once it gets several requests, side by side. When one fails, the others are cancelled, and have ended when
 * this rejects.
 *
 * Tensors go from step to step as they are, but for the batch dimension, which some steps may have and others not. A tensor with one reader
 * may be moved by it; others are read by several. What a step does not give is left out of the inputs of those behind it, as an optional
 * input of the ensemble is that the request left out.
 *
 * @param outputs - names, in the order of the answer; those that no step has given are left out, unless the request names them.
 * @throws what the first failing step throws; ServingError `INVALID_ARG` for an output that is missing.
 */
export async function runEnsemble(
  plan: EnsemblePlan,
  gates: ReadonlyMap<PlannedStep, StepGate>,
  request: InferRequest,
  outputs: readonly string[],
): Promise<readonly Tensor[]> {
  const stop = new AbortController()
  const signal = request.signal === undefined ? stop.signal : AbortSignal.any([stop.signal, request.signal])
  const values = valuesOf(plan, request)
  // That came first, rather than those that follow from it.
  let first: Readonly<{ error: unknown }> | undefined
  const done = walk(
    plan,
    outputs,
    (step) => runStep(plan, gates.get(step)!, step, { ...request, signal, mayLack: true }, values),
    (_, error) => {
      first ??= { error }
      stop.abort()
    },
  )
  await Promise.all(done.values())
  if (first !== undefined) throw first.error
  return answered(plan, request, outputs, values)
}

function valuesOf(plan: EnsemblePlan, { inputs }: InferRequest): Values {
  const { batched } = plan
  return new Map(inputs.map((tensor) => [tensor.name, { tensor: asRead(plan, tensor), batched }]))
}

/** What became of a run that goes as far as it can. */
export type PartialRun = Readonly<{
  /** Outputs of the steps that ended well, by name. */
  outputs: ReadonlyMap<string, Tensor>
  /** Steps that failed, or had not ended in time: with the error, `undefined` for those that are late. */
  failures: ReadonlyMap<PlannedStep, unknown>
  /** Resolves when no step runs any more. */
  ended: Promise<unknown>
}>

/** How long the steps may take: those up to one output, and then the others, which are not waited for without it. */
export type RunTime = Readonly<{
  first?: Readonly<{ output: string; withinMs: number }>
  withinMs: number
}>

/**
 * Runs a request as far as it goes: a step that fails takes only those with it that read what it gives, and what has not ended within
 * time is cancelled and left out. Never rejects.
 */
export async function runPartly(
  plan: EnsemblePlan,
  gates: ReadonlyMap<PlannedStep, StepGate>,
  request: InferRequest,
  outputs: readonly string[],
  { first, withinMs }: RunTime,
): Promise<PartialRun> {
  const stop = new AbortController()
  const { signal } = stop
  const values = valuesOf(plan, request)
  const failures = new Map<PlannedStep, unknown>()
  const running = new Set<PlannedStep>()
  const done = walk(
    plan,
    outputs,
    async (step) => {
      signal.throwIfAborted()
      running.add(step)
      try {
        await runStep(plan, gates.get(step)!, step, { ...request, signal }, values)
      } finally {
        running.delete(step)
      }
    },
    (step, error) => {
      if (!signal.aborted) failures.set(step, error)
    },
  )
  const ended = Promise.all(done.values())
  const firstDone = first === undefined ? undefined : done.get(plan.writers.get(first.output)!)
  const isWanted = first === undefined || firstDone === undefined || (await atMost(first.withinMs, firstDone))
  if (isWanted === true) await atMost(withinMs, ended)
  for (const step of running) failures.set(step, undefined)
  stop.abort()
  const given = outputs.flatMap((name) => {
    const value = values.get(name)
    return value === undefined ? [] : [[name, value.tensor] as const]
  })
  return { outputs: new Map(given), failures, ended }
}

/**
 * Runs the steps that outputs wait for, each once those whose outputs it reads have ended well.
 *
 * @param failed - told of those that did not; steps behind them do not run.
 * @returns for each step whether it ended well. None rejects.
 */
function walk(
  plan: EnsemblePlan,
  outputs: readonly string[],
  run: (step: PlannedStep) => Promise<void>,
  failed: (step: PlannedStep, error: unknown) => void,
): ReadonlyMap<PlannedStep, Promise<boolean>> {
  const done = new Map<PlannedStep, Promise<boolean>>()
  for (const step of stepsFor(plan, outputs)) {
    const before = step.inputs.flatMap(([, tensor]) => done.get(plan.writers.get(tensor)!) ?? [])
    const ended = Promise.all(before).then(async (well) => {
      if (!well.every(Boolean)) return false
      try {
        await run(step)
        return true
      } catch (error) {
        failed(step, error)
        return false
      }
    })
    done.set(step, ended)
  }
  return done
}

/** Steps that outputs wait for, in the order of the plan. */
export function stepsFor(plan: EnsemblePlan, outputs: readonly string[]): readonly PlannedStep[] {
  const needed = new Set<PlannedStep>()
  const visit = (tensor: string): void => {
    const step = plan.writers.get(tensor)
    if (step === undefined || needed.has(step)) return
    needed.add(step)
    for (const [, input] of step.inputs) visit(input)
  }
  for (const output of outputs) visit(output)
  return plan.steps.filter((step) => needed.has(step))
}

async function runStep(
  plan: EnsemblePlan,
  gate: StepGate,
  step: PlannedStep,
  request: InferRequest,
  values: Values,
): Promise<void> {
  const written = new Map(step.outputs)
  const inputs = step.inputs.flatMap(([own, tensor]) => {
    const value = values.get(tensor)
    // Of an optional input that was left out, or of an output that is missing for want of one.
    return value === undefined ? [] : [{ ...value, tensor: { ...value.tensor, name: own } }]
  })
  const ofBoxes = step.inputs.flatMap(([own, tensor]) => (plan.boxRows.has(tensor) ? [own] : []))
  if (inputs.some(({ tensor: { name, shape } }) => shape[0] === 0 && ofBoxes.includes(name))) {
    const batched = step.model.maxBatchSize > 0
    for (const tensor of withoutRows(step)) values.set(tensor.name, { tensor, batched })
    return
  }
  let batched = false
  const tensors = await gate.through(request.signal, () => {
    const model = step.model.current()
    batched = (model.config.max_batch_size ?? 0) > 0
    const taken = inputs.map((value) => converted(value, readerOf(model.inputs, value.tensor.name, batched)))
    const pieces = inPieces(taken, ofBoxes, mostRows(model, ofBoxes))
    return allOf(pieces.map((piece) => runModel(model, step, request, piece)))
  })
  for (const tensor of joined(tensors)) {
    const name = written.get(tensor.name)
    if (name !== undefined) values.set(name, { tensor: asRead(plan, { ...tensor, name }), batched })
  }
}

function runModel(
  model: LoadedModel,
  step: PlannedStep,
  request: InferRequest,
  inputs: readonly Tensor[],
): Promise<readonly Tensor[]> {
  const trace = request.trace?.step(model.name, model.version)
  const { trace: _, arrival: __, ...rest } = request
  const asked: InferRequest = {
    ...rest,
    ...(trace === undefined ? {} : { trace }),
    model: model.name,
    version: model.version,
    inputs,
    outputs: step.outputs.map(([name]) => ({ name, classification: 0 })),
  }
  return traced(trace, () => model.infer(asked))
}

/** Waits for all, and throws the first error in their order. */
async function allOf<T>(runs: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(runs)
  return Promise.all(runs)
}

/** Drops the mark of tensors that have more than one reader. */
function asRead(plan: EnsemblePlan, tensor: Tensor): Tensor {
  if (tensor.movable === undefined || (plan.readers.get(tensor.name) ?? 0) <= 1) return tensor
  const { movable: _, ...kept } = tensor
  return kept
}

function readerOf(specs: readonly TensorSpec[], name: string, batched: boolean): BatchReader {
  return { spec: specs.find((spec) => spec.name === name), batched }
}

function answered(
  plan: EnsemblePlan,
  { outputs: asked, mayLack }: InferRequest,
  outputs: readonly string[],
  values: Values,
): readonly Tensor[] {
  const answer = outputs.flatMap((name) => {
    const value = values.get(name)
    return value === undefined ? [] : [converted(value, readerOf(plan.given, name, plan.batched))]
  })
  const missing = outputs.find((name) => !values.has(name))
  if (missing === undefined || mayLack === true || (asked.length === 0 && answer.length > 0)) return answer
  throw new ServingError('INVALID_ARG', `unexpected inference output '${missing}': no step has given it`)
}
