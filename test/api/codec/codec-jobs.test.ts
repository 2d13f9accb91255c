import { expect, it } from 'vitest'
import { doJob } from '../../../src/api/codec/codec-jobs.js'
import { jsonOf, textsByGrpc } from '../../support/large-requests.js'

/** In a buffer of its own, as it comes to a thread. */
const moved = (bytes: Uint8Array): Buffer => Buffer.from(new Uint8Array(bytes).buffer)
const target = { model: 'm', version: '' }

it('gives the memory of what it has read back at once', () => {
  const body = moved(jsonOf('FP32', '0.5', 100))
  const bytes = moved(textsByGrpc('m', 100))
  const data = moved(Buffer.alloc(8))
  doJob({ kind: 'inferBody', given: { body, headerBytes: body.byteLength, ...target } })
  doJob({ kind: 'inferMessage', given: { bytes } })
  doJob({ kind: 'tensorJson', given: { name: 'out0', datatype: 'FP32', data } })
  expect([body.byteLength, bytes.byteLength, data.byteLength]).toEqual([0, 0, 0])
})

it('gives back what it cannot read, too', () => {
  const body = moved(Buffer.from('{"inputs": ['))
  const { answer } = doJob({ kind: 'loadBody', given: { body } })
  expect(answer).toHaveProperty('refusal')
  expect(body.byteLength).toBe(0)
})

it('lets tensors move on in the body they came in', () => {
  const json = JSON.stringify({
    inputs: [
      { name: 'in0', datatype: 'UINT8', shape: [50_000], parameters: { binary_data_size: 50_000 } },
      { name: 'in1', datatype: 'UINT8', shape: [2], data: [7, 8] },
    ],
  })
  const body = moved(Buffer.concat([Buffer.from(json), Buffer.alloc(50_000, 9)]))
  const { answer, transfer } = doJob({
    kind: 'inferBody',
    given: { body, headerBytes: json.length, ...target },
  })
  const { request } = (answer as { result: { request: { inputs: { data: Uint8Array }[] } } }).result
  expect(transfer).toContain(body.buffer)
  expect(request.inputs.map(({ data }) => [data.byteLength, data[0]])).toEqual([
    [50_000, 9],
    [2, 7],
  ])
})
