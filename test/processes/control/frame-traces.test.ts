import { describe, expect, it, onTestFinished } from 'vitest'
import type { EngineResult } from '../../../src/cameras/engine-report.js'
import { tracingSchema } from '../../../src/config/tracing.js'
import { queuedRecord } from '../../../src/delivery/outbox-queue.js'
import { nowMs } from '../../../src/lifecycle/clock.js'
import { eventTypes } from '../../../src/messages/cloud-event.js'
import { closedDetectionsJson } from '../../../src/messages/detections-json.js'
import { FrameTraces } from '../../../src/processes/control/frame-traces.js'
import { openTracing } from '../../../src/tracing/open-tracing.js'
import { emptyFrameCounts } from '../../../src/vision/accounting.js'
import { OtlpReceiver, outsideParents, shapeOf } from '../../support/otlp-receiver.js'
import { silentLog } from '../../support/silent-log.js'

async function rig() {
  const receiver = await OtlpReceiver.start()
  onTestFinished(() => receiver.stop())
  const config = tracingSchema.parse({ endpoint: receiver.url, sampling: 1 })
  const who = { process: 'control', pipeline: 'test', version: '1' } as const
  const tracing = await openTracing(config, who, silentLog())
  if (tracing === undefined) throw new Error('tracing is off')
  const traces = new FrameTraces(tracing)
  onTestFinished(() => traces.stop(1_000))
  const flush = () => tracing.flush(5_000)
  return { receiver, traces, flush }
}

const stages = { queue: 5, infer: 20, postprocess: 1 }

function result(seq: number, more: Partial<EngineResult> = {}): EngineResult {
  return {
    cameraId: 'cam',
    seq,
    capturedAtMs: Date.now() - 50,
    arrivedMs: nowMs() - 50,
    source: { widthPx: 1, heightPx: 1 },
    model: 'ppe',
    run: { timingsMs: stages, batchSize: 2 },
    labels: [['helmet', 3]],
    decodeGapsMs: [200],
    counts: emptyFrameCounts(),
    text: Buffer.from('{"timingsMs":{"queue":1'),
    ...more,
  }
}

/** The record of a frame, as sinks have it. */
function recordOf(seq: number, traceparent: string) {
  const value = closedDetectionsJson(result(seq).text, 40, { traceparent })
  const stored = {
    id: `r${seq}`,
    type: eventTypes.detections,
    cameraId: 'cam',
    seq,
    timeMs: Date.now(),
    value,
  }
  return queuedRecord({ ...stored, position: seq }, true, nowMs())
}

describe('the trace of a frame', () => {
  it('has its stages one after the other, and ends with the last sink', async () => {
    const { receiver, traces, flush } = await rig()
    const trace = traces.begin(result(1), 40)!
    trace.committed(true)
    traces.publish('r1', trace, ['kafka', 'hook', 'few'])
    const record = recordOf(1, trace.traceparent)
    traces.settled('few', record, 'filtered')
    traces.settled('kafka', record, 'delivered')
    await flush()
    expect(receiver.spans.map(({ name }) => name)).not.toContain('frame')
    traces.settled('hook', record, 'rejected')
    await flush()
    const [spans = []] = receiver.traces()
    expect(shapeOf(spans)).toBe(
      'frame (queue, infer, postprocess, publish, commit, deliver kafka, deliver hook)',
    )
    expect(outsideParents(spans)).toEqual([])
    const named = (name: string) => spans.find((span) => span.name === name)!
    const from = named('frame').startMs
    const place = (name: string) =>
      [named(name).startMs - from, named(name).endMs - from].map((ms) => Math.round(ms * 100) / 100)
    expect([place('queue'), place('infer'), place('postprocess'), place('publish')]).toEqual([
      [0, 5],
      [5, 25],
      [25, 26],
      [26, 40],
    ])
    expect(named('infer').attributes).toMatchObject({ 'gantry.batch.size': 2 })
    expect(named('deliver hook').error).toBe('rejected')
    expect(named('frame').attributes).toMatchObject({
      'gantry.camera.id': 'cam',
      'gantry.frame.seq': 1,
      'gantry.detections': 3,
      'gantry.decode.gap_ms': 200,
    })
    expect(Buffer.from(named('frame').traceId, 'hex')).toHaveLength(16)
    expect(record.traceparent).toBe(`00-${named('frame').traceId}-${named('frame').spanId}-01`)
  })

  it('ends with its commit where there are no sinks, and has no stages where a result was used again', async () => {
    const { receiver, traces, flush } = await rig()
    const { run: _, ...reused } = result(1)
    const trace = traces.begin(reused, 40)!
    trace.committed(false)
    traces.publish('r1', trace, [])
    await flush()
    expect(shapeOf(receiver.spans)).toBe('frame (publish, commit)')
  })

  it('has stages that end with the publication, whatever they say', async () => {
    const { receiver, traces, flush } = await rig()
    const trace = traces.begin(result(1), 10)!
    traces.publish('r1', trace, [])
    await flush()
    expect(outsideParents(receiver.spans)).toEqual([])
  })

  it('R157: gets a delivery later, where it has ended, or was in an earlier run', async () => {
    const { receiver, traces, flush } = await rig()
    const trace = traces.begin(result(1), 40)!
    traces.publish('r1', trace, ['kafka'])
    // More than are waited for.
    for (let seq = 2; seq <= 600; seq += 1)
      traces.publish(`r${seq}`, traces.begin(result(seq), 40)!, ['kafka'])
    await flush()
    const ended = receiver.spans.filter(({ name }) => name === 'frame')
    expect(ended.length).toBeGreaterThan(50)
    expect(ended[0]?.attributes).toMatchObject({ 'gantry.undelivered': 'kafka', 'gantry.frame.seq': 1 })
    traces.settled('kafka', recordOf(1, trace.traceparent), 'delivered')
    const earlier = `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01`
    traces.settled('kafka', recordOf(9_000, earlier), 'delivered')
    await flush()
    const late = receiver.spans.filter(({ name }) => name === 'deliver kafka')
    expect(late.map(({ traceId, parentSpanId }) => `00-${traceId}-${parentSpanId}-01`)).toEqual([
      trace.traceparent,
      earlier,
    ])
  })

  it('ends at the end, with what is not delivered', async () => {
    const { receiver, traces } = await rig()
    traces.publish('r1', traces.begin(result(1), 40)!, ['kafka', 'hook'])
    await traces.stop(5_000)
    expect(receiver.spans.find(({ name }) => name === 'frame')?.attributes).toMatchObject({
      'gantry.undelivered': 'kafka,hook',
    })
  })
})
