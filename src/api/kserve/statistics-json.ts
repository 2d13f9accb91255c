import { requestDurations, type Duration, type ModelStatistics } from '../../runtime/statistics.js'

/**
 * Triton's statistics extension: the JSON over HTTP and, as the names are the same, the message over gRPC. Every member is there, always:
 * clients read them unseen.
 */
export function statisticsJson(statistics: readonly ModelStatistics[]): Readonly<Record<string, unknown>> {
  return { model_stats: statistics.map(modelJson) }
}

function modelJson(model: ModelStatistics): unknown {
  return {
    name: model.name,
    version: model.version,
    last_inference: model.lastInferenceMs,
    inference_count: model.inferenceCount,
    execution_count: model.executionCount,
    inference_stats: Object.fromEntries(
      requestDurations.map((name) => [name, durationJson(model.inference[name])]),
    ),
    response_stats: {},
    batch_stats: model.batches.map((batch) => ({
      batch_size: batch.batchSize,
      compute_input: durationJson(batch.computeInput),
      compute_infer: durationJson(batch.computeInfer),
      compute_output: durationJson(batch.computeOutput),
    })),
    memory_usage: model.memory.map(({ type, id, bytes }) => ({ type, id, byte_size: bytes })),
  }
}

/** Whole numbers: clients read them as such. */
function durationJson({ count, ns }: Duration): Duration {
  return { count, ns: Math.round(ns) }
}
