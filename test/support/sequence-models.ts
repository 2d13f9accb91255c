import { buildOnnx, type TensorSpec } from './onnx-builder.js'

/** One number of each request of a batch. */
export const column = (name: string): TensorSpec => ({ name, type: 'float32', shape: ['n', 1] })

/** Gives back what it was told: the input and all controls, one column each. */
export const mirror = buildOnnx({
  inputs: ['INPUT', 'START', 'END', 'READY']
    .map(column)
    .concat({ name: 'CORRID', type: 'uint64', shape: ['n', 1] }),
  outputs: ['VALUE', 'S', 'E', 'R', 'ID'].map(column),
  nodes: [
    { op: 'Identity', inputs: ['INPUT'], outputs: ['VALUE'] },
    { op: 'Identity', inputs: ['START'], outputs: ['S'] },
    { op: 'Identity', inputs: ['END'], outputs: ['E'] },
    { op: 'Identity', inputs: ['READY'], outputs: ['R'] },
    { op: 'Cast', inputs: ['CORRID'], outputs: ['ID'], attributes: { to: 1 } },
  ],
})

/** `SUM = INPUT + SUM_IN`, kept by the server. */
export const adder = buildOnnx({
  inputs: ['INPUT', 'SUM_IN'].map(column),
  outputs: ['OUTPUT', 'SUM_OUT'].map(column),
  nodes: [
    { op: 'Add', inputs: ['INPUT', 'SUM_IN'], outputs: ['OUTPUT'] },
    { op: 'Identity', inputs: ['OUTPUT'], outputs: ['SUM_OUT'] },
  ],
})

/** What `mirror` is told of a sequence. */
export const controls = `
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
  control_input { name: "END" control { kind: CONTROL_SEQUENCE_END fp32_false_true: [ 0, 1 ] } }
  control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } }
  control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }`
