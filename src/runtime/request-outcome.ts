import { nowMs } from '../lifecycle/clock.js'
import type { BatchResult } from './backend.js'
import type { ExecutionTimes } from './statistics.js'
import { ServingError } from '../tensors/serving-error.js'
import type { StatisticsRecorder } from './statistics-recorder.js'
import type { Tensor } from '../tensors/tensor.js'
import { requestPrefix } from './check-request.js'
import type { PendingRequest } from './pending-request.js'

/** Tells requests how they ended, and counts it. */
export class RequestOutcome {
  constructor(
    readonly statistics: StatisticsRecorder,
    /** Gives outputs of the model the shapes that clients see. */
    readonly reshape: (tensor: Tensor) => Tensor,
  ) {}

  /** @param result - of the run that the request was in, where it had the place `index`. */
  settle(pending: PendingRequest, result: BatchResult, index: number): void {
    const outputs = result.results[index]
    const { outputs: wanted, mayLack } = pending.checked
    if (outputs === undefined || outputs instanceof Error) {
      this.fail(pending, backendError(outputs ?? new Error('the backend gave no answer')))
      return
    }
    const answer: Tensor[] = []
    for (const name of wanted) {
      const tensor = outputs.find((candidate) => candidate.name === name)
      if (tensor === undefined && mayLack) continue
      if (tensor === undefined) {
        this.fail(pending, backendError(new Error(`the backend gave no output '${name}'`)))
        return
      }
      answer.push(this.reshape(tensor))
    }
    this.statistics.recordSuccess(
      pending.batchSize,
      (nowMs() - pending.enqueuedMs) * 1e6,
      (pending.startedMs - pending.enqueuedMs) * 1e6,
      result.times,
    )
    traceRun(pending, result.times)
    pending.request.onRun?.(result.times)
    pending.resolve(answer)
  }

  fail(pending: PendingRequest, error: ServingError): void {
    this.statistics.recordFailure(error.reason, (nowMs() - pending.enqueuedMs) * 1e6)
    pending.reject(error)
  }

  timedOut(pending: PendingRequest): void {
    this.fail(pending, rejectedError('Request timeout expired'))
  }

  sequenceTimedOut(pending: PendingRequest): void {
    this.fail(pending, rejectedError('timeout of the corresponding sequence has been expired'))
  }

  queueFull(pending: PendingRequest): void {
    this.fail(pending, rejectedError(`${requestPrefix(pending.request)}Exceeds maximum queue size`))
  }

  cancelled(pending: PendingRequest): void {
    this.fail(pending, cancelledError(pending))
  }
}

/** The times of the run follow its start; what its thread took beside them comes after its end. */
function traceRun(
  { request: { trace }, enqueuedMs, startedMs }: PendingRequest,
  times: ExecutionTimes,
): void {
  if (trace === undefined) return
  const inputEndMs = startedMs + times.computeInputNs / 1e6
  const outputStartMs = inputEndMs + times.computeInferNs / 1e6
  trace.at('QUEUE_START', enqueuedMs)
  trace.at('COMPUTE_START', startedMs)
  trace.at('COMPUTE_INPUT_END', inputEndMs)
  trace.at('COMPUTE_OUTPUT_START', outputStartMs)
  trace.at('COMPUTE_END', outputStartMs + times.computeOutputNs / 1e6)
}

/** What a backend threw, as the client is told. */
export function backendError(error: unknown): ServingError {
  if (error instanceof ServingError) return error
  return new ServingError(
    'INTERNAL',
    error instanceof Error ? error.message : String(error),
    'BACKEND',
    error,
  )
}

export function cancelledError({ request }: Pick<PendingRequest, 'request'>): ServingError {
  return new ServingError('CANCELLED', `${requestPrefix(request)}Request cancelled`, 'CANCELED')
}

/** What did not come to its turn, as the client is told. */
export function rejectedError(why: string): ServingError {
  return new ServingError('UNAVAILABLE', why, 'REJECTED')
}
