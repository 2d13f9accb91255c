import type { Model } from '../api/types.js'
import { shellWord, tokenHeader } from './shell.js'

type Input = Model['inputs'][number]

/** Inputs of more elements are sent as binary tensors. */
const mostInJson = 16
/** Of each element. What stands for a text is its length, 0. */
const bytesOf: Readonly<Record<string, number>> = {
  BOOL: 1,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  FP16: 2,
  BF16: 2,
  FP32: 4,
  FP64: 8,
  BYTES: 4,
}

/**
 * A command that asks a model, with nothing but bash and curl: inputs of zeros in the right shape. Large ones are sent as KServe's binary
 * tensors, whose JSON stands in front of the bytes.
 *
 * @param base - URL of the service, with `/` at its end.
 */
export function inferCommand(
  base: string,
  model: Pick<Model, 'name' | 'inputs'>,
  wantsToken: boolean,
): string {
  const url = shellWord(`${base}v2/models/${encodeURIComponent(model.name)}/infer`)
  const curl = `curl -sS${tokenHeader(wantsToken)}`
  const isSmall = model.inputs.every((input) => elements(input) <= mostInJson && isInJson(input))
  if (isSmall) {
    const inputs = model.inputs.map((input) => ({ ...inputHead(input), data: zeros(input) }))
    return `${curl} ${url} -H 'content-type: application/json' -d ${shellWord(JSON.stringify({ inputs }))} | cut -c -600`
  }
  const sized = model.inputs.map((input) => ({
    ...inputHead(input),
    parameters: { binary_data_size: byteSize(input) },
  }))
  const head = JSON.stringify({ inputs: sized })
  const bytes = model.inputs.reduce((sum, input) => sum + byteSize(input), 0)
  const headBytes = new TextEncoder().encode(head).byteLength
  return [
    `{ printf %s ${shellWord(head)}; head -c ${bytes} /dev/zero; } |`,
    `${curl} ${url} -H 'Inference-Header-Content-Length: ${headBytes}' --data-binary @- | cut -c -600`,
  ].join('\n  ')
}

function inputHead(input: Input): Readonly<{ name: string; datatype: string; shape: readonly number[] }> {
  return { name: input.name, datatype: input.datatype, shape: shapeOf(input) }
}

/** Free sizes are 1. */
function shapeOf({ shape }: Input): readonly number[] {
  return shape.map((size) => (size < 0 ? 1 : size))
}

function elements(input: Input): number {
  return shapeOf(input).reduce((product, size) => product * size, 1)
}

function byteSize(input: Input): number {
  return elements(input) * (bytesOf[input.datatype] ?? 1)
}

/** JSON has no half floats. */
function isInJson({ datatype }: Input): boolean {
  return datatype !== 'FP16' && datatype !== 'BF16'
}

function zeros(input: Input): readonly unknown[] {
  const zero = input.datatype === 'BYTES' ? '' : input.datatype === 'BOOL' ? false : 0
  return Array.from({ length: elements(input) }, () => zero)
}
