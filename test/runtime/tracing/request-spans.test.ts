import { describe, expect, it, onTestFinished } from 'vitest'
import { tracingSchema } from '../../../src/config/tracing.js'
import type { Message } from '../../../src/kserve/grpc-schema.js'
import { RequestSpans } from '../../../src/runtime/tracing/request-spans.js'
import { Tracer } from '../../../src/runtime/tracing/tracer.js'
import { openTracing } from '../../../src/tracing/open-tracing.js'
import { ensembleStep } from '../../support/ensemble-text.js'
import { GrpcClient } from '../../support/grpc-client.js'
import { ask } from '../../support/http.js'
import { buildOnnx } from '../../support/onnx-builder.js'
import { addModel } from '../../support/onnx-models.js'
import { OtlpReceiver, outsideParents, type ReceivedSpan, shapeOf } from '../../support/otlp-receiver.js'
import { fp32Input, ServedRepository } from '../../support/served-repository.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'
import { runClient, tritonClients } from '../../support/triton-clients.js'
import { until } from '../../support/until.js'

const tensor = (name: string) => ({ name, type: 'float32', shape: ['batch', 2] }) as const
const double = buildOnnx({
  inputs: [tensor('x')],
  outputs: [tensor('y')],
  nodes: [{ op: 'Add', inputs: ['x', 'x'], outputs: ['y'] }],
})
const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'
const traceparent = `00-${traceId}-${spanId}-01`

/** An ensemble of three steps, one after the other. */
function repository(): string {
  const dir = tempDir()
  const names = ['first', 'second', 'third']
  for (const name of names) addModel(dir, name, { onnx: double, config: 'max_batch_size: 4' })
  const steps = names.map((name, index) =>
    ensembleStep(name, { x: index === 0 ? 'in' : `t${index}` }, { y: index === 2 ? 'out' : `t${index + 1}` }),
  )
  addModel(dir, 'chain', {
    config: `platform: "ensemble" max_batch_size: 4
      input { name: "in" data_type: TYPE_FP32 dims: [ 2 ] } output { name: "out" data_type: TYPE_FP32 dims: [ 2 ] }
      ensemble_scheduling { ${steps.join(' ')} }`,
  })
  return dir
}

async function served(settings: object = {}) {
  const receiver = await OtlpReceiver.start()
  onTestFinished(() => receiver.stop())
  const config = tracingSchema.parse({ endpoint: receiver.url, sampling: 0, ...settings })
  const who = { process: 'model-server', pipeline: 'test', version: '1' } as const
  const tracing = await openTracing(config, who, silentLog())
  if (tracing === undefined) throw new Error('tracing is off')
  onTestFinished(() => tracing.stop(1_000))
  const models = await ServedRepository.of(repository(), {
    tracer: new Tracer(undefined, new RequestSpans(tracing)),
  })
  const http = (model: string, headers: Record<string, string | string[]> = {}, data = [1, 2]) =>
    ask(`${models.url}/v2/models/${model}/infer`, {
      method: 'POST',
      headers,
      body: { id: 'r7', inputs: [{ name: inputOf(model), datatype: 'FP32', shape: [1, data.length], data }] },
    })
  const grpc = (metadata: Record<string, string>) => {
    const client = new GrpcClient(Number(models.addresses.grpc.split(':')[1]), metadata)
    onTestFinished(() => client.close())
    return client
  }
  /** Waits for the root of a trace, which ends last. */
  const spans = async (count: number): Promise<readonly ReceivedSpan[]> =>
    until('spans', async () => {
      await tracing.flush(5_000)
      return receiver.spans.filter(({ kind }) => kind === 2).length >= count ? receiver.spans : undefined
    })
  return { receiver, tracing, http, grpc, spans, addresses: models.addresses }
}

const inputOf = (model: string) => (model === 'chain' ? 'in' : 'x')

function message(model: string): Message {
  const { data, ...input } = fp32Input(inputOf(model), [1, 2], [1, 2])
  return { model_name: model, inputs: [input], raw_input_contents: [data] }
}

const ofModel = 'queue, compute input, compute infer, compute output'
const chain = `model chain (${['first', 'second', 'third'].map((step) => `model ${step} (${ofModel})`).join(', ')})`

describe('spans of requests', () => {
  it('go on with the trace of an HTTP request, through the steps of an ensemble', async () => {
    const { http, spans } = await served()
    expect((await http('chain', { traceparent, tracestate: 'a=1' })).status).toBe(200)
    const found = await spans(1)
    expect(shapeOf(found, spanId)).toBe(`POST /v2/models/{model}/infer (receive, ${chain}, send)`)
    expect(outsideParents(found)).toEqual([])
    const root = found.find(({ parentSpanId }) => parentSpanId === spanId)
    expect(root).toMatchObject({
      traceId,
      kind: 2,
      traceState: 'a=1',
      error: undefined,
      attributes: {
        'http.request.method': 'POST',
        'gantry.model.name': 'chain',
        'gantry.model.version': '1',
        'gantry.request.id': 'r7',
      },
    })
    expect(Math.abs(Date.now() - (root?.endMs ?? 0))).toBeLessThan(60_000)
  })

  it('go on with the trace of gRPC calls, of each request of a stream too', async () => {
    const { grpc, spans } = await served()
    const client = grpc({ traceparent })
    await client.call('ModelInfer', message('chain'))
    const stream = client.stream('ModelStreamInfer')
    for (let sent = 0; sent < 2; sent += 1) stream.write(message('first'))
    stream.end()
    await new Promise((resolve) => stream.on('data', () => undefined).on('end', resolve))
    const found = await spans(3)
    const roots = found.filter(({ parentSpanId }) => parentSpanId === spanId)
    expect(roots.map(({ name }) => name).sort()).toEqual([
      'inference.GRPCInferenceService/ModelInfer',
      'inference.GRPCInferenceService/ModelStreamInfer',
      'inference.GRPCInferenceService/ModelStreamInfer',
    ])
    expect(shapeOf(found, spanId)).toContain(`ModelInfer (${chain}, send)`)
    expect(new Set(found.map((span) => span.traceId))).toEqual(new Set([traceId]))
    expect(outsideParents(found)).toEqual([])
  })

  it.skipIf(tritonClients === undefined)(
    "go on with what tritonclient's headers say, by both protocols",
    async () => {
      const { addresses, spans } = await served()
      const code = `
import sys, numpy, tritonclient.http as http, tritonclient.grpc as grpc
for kind, address in ((http, sys.argv[1]), (grpc, sys.argv[2])):
    tensor = kind.InferInput("in", [1, 2], "FP32")
    tensor.set_data_from_numpy(numpy.ones((1, 2), numpy.float32))
    kind.InferenceServerClient(address).infer("chain", [tensor], headers={"traceparent": sys.argv[3]})
`
      const args = ['-c', code, addresses.http, addresses.grpc, traceparent]
      await runClient(tritonClients?.python ?? '', args, 120_000)
      const found = await spans(2)
      expect(shapeOf(found, spanId)).toBe(
        `POST /v2/models/{model}/infer (receive, ${chain}, send), inference.GRPCInferenceService/ModelInfer (${chain}, send)`,
      )
    },
    150_000,
  )

  it('are made of no request without a trace at sampling 0, of each at 1, and of none that says no', async () => {
    const [none, all] = [await served(), await served({ sampling: 1 })]
    for (let sent = 0; sent < 20; sent += 1) {
      await none.http('first')
      await all.http('first')
      await all.http('first', { traceparent: `00-${traceId}-${spanId}-00` })
    }
    expect(new Set((await all.spans(20)).map((span) => span.traceId)).size).toBe(20)
    await none.tracing.flush(5_000)
    expect(none.receiver.spans).toEqual([])
    expect(all.receiver.spans.some((span) => span.traceId === traceId)).toBe(false)
  })

  it.each([
    ['of version ff', `ff-${traceId}-${spanId}-01`],
    ['of zeros', `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01`],
    ['in capitals', traceparent.toUpperCase()],
    ['that is long', `00-${'a'.repeat(6_000)}`],
    ['that comes twice', [traceparent, traceparent]],
    ['with bytes that are no text', '00-\xff\xfe-01'],
  ])('S38: a traceparent %s is as if it were not there', async (_, header) => {
    const { http, spans } = await served({ sampling: 1 })
    expect((await http('first', { traceparent: header, tracestate: 'a=1' })).status).toBe(200)
    const root = (await spans(1)).find(({ kind }) => kind === 2)
    expect(root).toMatchObject({ parentSpanId: '', traceState: '' })
    expect(root?.traceId).not.toBe(traceId)
  })

  it('say why a request failed, and in which step', async () => {
    const { http, spans } = await served()
    expect((await http('chain', { traceparent }, [1, 2, 3])).status).toBe(400)
    const found = await spans(1)
    const root = found.find(({ parentSpanId }) => parentSpanId === spanId)
    expect(root?.error).toContain('unexpected shape')
    expect(found.find(({ name }) => name === 'model chain')?.error).toContain('unexpected shape')
  })
})
