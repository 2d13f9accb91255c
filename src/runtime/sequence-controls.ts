import type { ControlKind, ModelConfig, SequenceControl } from '../repository/model-config.js'
import type { ConfigType } from '../tensors/element-type.js'
import type { Tensor } from '../tensors/tensor.js'
import { ServingError } from '../tensors/serving-error.js'

/** What a control input tells the model of one request. */
export type ControlState = Readonly<{ start: boolean; end: boolean; ready: boolean; id: string }>

type Control = Readonly<{ name: string; shape: readonly number[]; encode: (state: ControlState) => Tensor }>

/**
 * Fills in the control inputs of a sequence model.
 *
 * @param config - checked: each control has the values or the type that it needs.
 */
export function sequenceControls(config: ModelConfig): (state: ControlState) => readonly Tensor[] {
  const batched = (config.max_batch_size ?? 0) > 0
  const controls = (config.sequence_batching?.control_input ?? []).flatMap(({ name, control }) =>
    control.map((one) => controlOf(name, one, batched ? [1, 1] : [1])),
  )
  return (state) => controls.map((control) => control.encode(state))
}

function controlOf(name: string, control: SequenceControl, shape: readonly number[]): Control {
  const kind = control.kind ?? 'CONTROL_SEQUENCE_START'
  const encode = kind === 'CONTROL_SEQUENCE_CORRID' ? correlationId(control) : flag(kind, control)
  return { name, shape, encode: (state) => ({ name, shape, ...encode(state) }) }
}

type Content = Pick<Tensor, 'datatype' | 'data'>

function flag(
  kind: ControlKind,
  { int32_false_true, fp32_false_true, bool_false_true }: SequenceControl,
): (state: ControlState) => Content {
  const isSet = (state: ControlState) =>
    kind === 'CONTROL_SEQUENCE_START'
      ? state.start
      : kind === 'CONTROL_SEQUENCE_END'
        ? state.end
        : state.ready
  const values =
    <T>(falseTrue: readonly T[], encode: (value: T) => Content) =>
    (state: ControlState) =>
      encode(falseTrue[isSet(state) ? 1 : 0]!)
  if (int32_false_true.length > 0)
    return values(int32_false_true, (value) => content('INT32', Int32Array.of(value)))
  if (fp32_false_true.length > 0)
    return values(fp32_false_true, (value) => content('FP32', Float32Array.of(value)))
  return values(bool_false_true, (value) => content('BOOL', Uint8Array.of(value ? 1 : 0)))
}

/** Ids are text; as numbers they are checked when a request comes. */
function correlationId({ data_type = 'TYPE_UINT64' }: SequenceControl) {
  const encode = idEncoders[data_type]!
  return ({ id }: ControlState) => encode(id)
}

const idEncoders: Readonly<Partial<Record<ConfigType, (id: string) => Content>>> = {
  TYPE_UINT64: (id) => content('UINT64', BigUint64Array.of(number(id))),
  TYPE_INT64: (id) => content('INT64', BigInt64Array.of(number(id))),
  TYPE_UINT32: (id) => content('UINT32', Uint32Array.of(Number(number(id)))),
  TYPE_INT32: (id) => content('INT32', Int32Array.of(Number(number(id)))),
  TYPE_STRING: (id) => {
    const text = Buffer.from(id)
    const data = Buffer.concat([Buffer.from(Uint32Array.of(text.length).buffer), text])
    return { datatype: 'BYTES', data }
  },
}

/** 0 for a slot without a sequence. */
function number(id: string): bigint {
  if (id === '') return 0n
  if (/^\d{1,20}$/.test(id)) return BigInt(id)
  throw new ServingError('INVALID_ARG', `correlation id '${id}' is no number, but the model takes numbers`)
}

function content(datatype: Tensor['datatype'], values: ArrayBufferView): Content {
  return { datatype, data: new Uint8Array(values.buffer, values.byteOffset, values.byteLength) }
}
