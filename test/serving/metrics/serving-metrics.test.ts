import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { ServingMetrics } from '../../../src/serving/metrics/serving-metrics.js'
import { StatisticsRecorder } from '../../../src/runtime/statistics-recorder.js'

const times = { computeInputNs: 1_000, computeInferNs: 2_000_000, computeOutputNs: 3_000, copiedBytes: 64 }

function recorded(): StatisticsRecorder {
  const recorder = new StatisticsRecorder('m', '1', { site: 'north', 'bad-name': 'x' })
  recorder.recordExecution(3, times)
  recorder.recordSuccess(2, 5_000_000, 1_000_000, times)
  recorder.recordSuccess(1, 4_000_000, 500_000, times)
  recorder.recordFailure('REJECTED', 7_000)
  return recorder
}

describe('StatisticsRecorder', () => {
  it('counts the three compute stages together, and items apart from requests and runs', () => {
    const { inference, batches, inferenceCount, executionCount, lastInferenceMs } = recorded().statistics()
    expect(inference).toEqual({
      success: { count: 2, ns: 9_000_000 },
      fail: { count: 1, ns: 7_000 },
      queue: { count: 2, ns: 1_500_000 },
      compute_input: { count: 2, ns: 2_000 },
      compute_infer: { count: 2, ns: 4_000_000 },
      compute_output: { count: 2, ns: 6_000 },
      cache_hit: { count: 0, ns: 0 },
      cache_miss: { count: 0, ns: 0 },
    })
    expect([inferenceCount, executionCount]).toEqual([3, 1])
    expect(batches).toEqual([
      {
        batchSize: 3,
        computeInput: { count: 1, ns: 1_000 },
        computeInfer: { count: 1, ns: 2_000_000 },
        computeOutput: { count: 1, ns: 3_000 },
      },
    ])
    expect(lastInferenceMs).toBeGreaterThan(1.6e12)
  })

  it('counts a cache hit as a success that waited for nothing, and as no inference', () => {
    const recorder = new StatisticsRecorder('m', '1')
    recorder.recordCacheHit(2_000, 5_000)
    recorder.recordCacheMiss(3_000)
    const { inference, inferenceCount, executionCount } = recorder.statistics()
    expect(inference).toMatchObject({
      success: { count: 1, ns: 8_000 },
      queue: { count: 1, ns: 0 },
      compute_infer: { count: 0, ns: 0 },
      cache_hit: { count: 1, ns: 2_000 },
      cache_miss: { count: 1, ns: 3_000 },
    })
    expect([inferenceCount, executionCount]).toEqual([0, 0])
  })
})

describe('ServingMetrics', () => {
  async function text(): Promise<string> {
    const models = [recorded(), new StatisticsRecorder('gone', '1')]
    const metrics = new ServingMetrics(() => models)
    expect(await metrics.text()).toContain('model="gone"')
    models.pop()
    return metrics.text()
  }

  it('prints the names of Triton with labels in alphabetical order', async () => {
    const lines = (await text()).split('\n')
    const labels = 'bad_name="x",model="m",site="north",version="1"'
    expect(lines).toEqual(
      expect.arrayContaining([
        `nv_inference_request_success{${labels}} 2`,
        `nv_inference_request_failure{bad_name="x",model="m",reason="REJECTED",site="north",version="1"} 1`,
        `nv_inference_request_failure{bad_name="x",model="m",reason="BACKEND",site="north",version="1"} 0`,
        `nv_inference_count{${labels}} 3`,
        `nv_inference_exec_count{${labels}} 1`,
        `nv_inference_request_duration_us{${labels}} 9000`,
        `nv_inference_queue_duration_us{${labels}} 1500`,
        `nv_inference_compute_infer_duration_us{${labels}} 4000`,
        `nv_inference_pending_request_count{${labels}} 0`,
        `gantry_model_copied_bytes_total{${labels}} 64`,
        `gantry_model_slow_runs_total{${labels}} 0`,
        `gantry_model_queue_seconds_bucket{${labels},le="0.0005"} 1`,
        `gantry_model_queue_seconds_bucket{${labels},le="+Inf"} 2`,
        `gantry_model_queue_seconds_count{${labels}} 2`,
        `gantry_model_compute_infer_seconds_sum{${labels}} 0.004`,
      ]),
    )
    expect(lines.filter((line) => line.includes('gone'))).toEqual([])
    expect(lines.some((line) => line.startsWith('nv_cpu_memory_total_bytes '))).toBe(true)
    expect(lines.some((line) => line.startsWith('nv_cache_') && line.includes('{'))).toBe(false)
  })

  const promtool = spawnSync('promtool', ['--version']).error === undefined

  it.skipIf(!promtool)(
    'is well formed for promtool, but for the names that are given by Triton',
    async () => {
      const { stderr, stdout } = spawnSync('promtool', ['check', 'metrics'], {
        input: await text(),
        encoding: 'utf8',
      })
      const complaints = `${stdout}${stderr}`.split('\n').filter((line) => line !== '')
      expect(complaints.filter((line) => !line.startsWith('nv_'))).toEqual([])
    },
  )
})
