import { atMost } from '../lifecycle/delay.js'
import type { InferRequest } from '../runtime/infer.js'
import type { LoadedModel } from '../runtime/loaded-model.js'
import { ServingError } from '../tensors/serving-error.js'
import type { Tensor } from '../tensors/tensor.js'
import { traced } from '../runtime/tracing/request-trace.js'
import { inPieces, joined, mostRows, withoutRows } from './box-rows.js'
import type { EnsemblePlan } from './ensemble-plan.js'
import type { StepGate } from './step-gate.js'
import type { PlannedStep } from './step-model.js'

/** Tensors of one request as they come into being, under the names of the ensemble. */
type Values = Map<string, Tensor>

/**
 * Runs a request through the graph: each step starts when its inputs are there, side by side where it can. Steps that no wanted
 * output needs are left out, and so are those that are given no rows because there is no box: their outputs have none either. Of more
 * boxes than a model takes at once it gets several requests, side by side. When one fails, the others are cancelled, and have ended when
 * this rejects.
 *
 * Tensors go from step to step as they are. A tensor with one reader may be moved by it; others are read by several.
 *
 * @param outputs - names, in the order of the answer.
 * @throws what the first failing step throws.
 */
export async function runEnsemble(
  plan: EnsemblePlan,
  gates: ReadonlyMap<PlannedStep, StepGate>,
  request: InferRequest,
  outputs: readonly string[],
): Promise<readonly Tensor[]> {
  const stop = new AbortController()
  const signal = request.signal === undefined ? stop.signal : AbortSignal.any([stop.signal, request.signal])
  const values: Values = new Map(request.inputs.map((tensor) => [tensor.name, asRead(plan, tensor)]))
  // That came first, rather than those that follow from it.
  let first: Readonly<{ error: unknown }> | undefined
  const done = walk(
    plan,
    outputs,
    (step) => runStep(plan, gates.get(step)!, step, { ...request, signal }, values),
    (_, error) => {
      first ??= { error }
      stop.abort()
    },
  )
  await Promise.all(done.values())
  if (first !== undefined) throw first.error
  return outputs.map((name) => answered(values, name))
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
  const values: Values = new Map(request.inputs.map((tensor) => [tensor.name, asRead(plan, tensor)]))
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
    const tensor = values.get(name)
    return tensor === undefined ? [] : [[name, tensor] as const]
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
    // An optional input of the ensemble that the request left out.
    return value === undefined ? [] : [{ ...value, name: own }]
  })
  const ofBoxes = step.inputs.flatMap(([own, tensor]) => (plan.boxRows.has(tensor) ? [own] : []))
  if (inputs.some(({ name, shape }) => shape[0] === 0 && ofBoxes.includes(name))) {
    for (const tensor of withoutRows(step)) values.set(tensor.name, tensor)
    return
  }
  const tensors = await gate.through(request.signal, () => {
    const model = step.model.current()
    const pieces = inPieces(inputs, ofBoxes, mostRows(model, ofBoxes))
    return allOf(pieces.map((piece) => runModel(model, step, request, piece)))
  })
  for (const tensor of joined(tensors)) {
    const name = written.get(tensor.name)
    if (name !== undefined) values.set(name, asRead(plan, { ...tensor, name }))
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

function answered(values: Values, name: string): Tensor {
  const tensor = values.get(name)
  if (tensor !== undefined) return tensor
  throw new ServingError('INVALID_ARG', `unexpected inference output '${name}': no step has given it`)
}
