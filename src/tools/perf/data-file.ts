import { z } from 'zod'
import { readTextFile } from '../../config/text-file.js'
import { elementBytes } from '../../tensors/element-type.js'
import { elementCount, type Tensor } from '../../tensors/tensor.js'
import { listedData } from '../client/http-infer.js'
import type { ShapedInput } from './input-data.js'
import { PerfSettingError } from './perf-errors.js'

const contentSchema = z.union([
  z.array(z.unknown()),
  z.object({ b64: z.string() }),
  z.object({
    content: z.union([z.array(z.unknown()), z.object({ b64: z.string() })]),
    shape: z.array(z.number().int().min(0)).optional(),
  }),
])
const stepSchema = z.record(z.string(), contentSchema)
const fileSchema = z.object({ data: z.array(z.union([stepSchema, z.array(stepSchema)])).min(1) })

/**
 * Requests of a data file in the JSON of perf_analyzer: `{"data": [{"INPUT": [1, 2]}, ...]}`, an input as a list, as
 * `{"content": [...], "shape": [...]}` or as base64 of its bytes in `{"b64": ...}`. A row has no batch dimension; it is repeated for
 * each row of the batch. Lists of lists, which are sequences there, are taken one after another.
 *
 * @see triton-inference-server/perf_analyzer, docs/input_data.md
 * @throws PerfSettingError `GANTRY_USAGE`
 */
export function readDataFile(
  path: string,
  inputs: readonly ShapedInput[],
  batchSize: number | undefined,
): readonly (readonly Tensor[])[] {
  const wrong = (problem: string) =>
    new PerfSettingError(
      `--input-data ${path}: ${problem}`,
      'It is the JSON of perf_analyzer: {"data": [{"INPUT": [1, 2, 3]}]}.',
    )
  const steps = stepsIn(path, wrong)
  return steps.map((step, index) =>
    inputs.map((input) => {
      const content = step[input.name]
      if (content === undefined) throw wrong(`data[${index}] has no input "${input.name}"`)
      try {
        return tensorOf(input, content, batchSize)
      } catch (error) {
        throw wrong(`data[${index}].${input.name}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }),
  )
}

type Step = z.infer<typeof stepSchema>
type Whole = Readonly<{ content: unknown[] | { b64: string }; shape?: number[] | undefined }>

function stepsIn(path: string, wrong: (problem: string) => PerfSettingError): readonly Step[] {
  let json: unknown
  try {
    json = JSON.parse(readTextFile(path))
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error))
  }
  const { data, error } = fileSchema.safeParse(json)
  if (data === undefined) throw wrong(z.prettifyError(error).split('\n')[0] ?? 'it has no data')
  return data.data.flat()
}

function tensorOf(
  { name, datatype, shape: usual }: ShapedInput,
  content: Step[string],
  batchSize: number | undefined,
): Tensor {
  const whole: Whole = Array.isArray(content) || 'b64' in content ? { content } : content
  const row = whole.shape ?? (batchSize === undefined ? usual : usual.slice(1))
  const bytes = Array.isArray(whole.content)
    ? listedData(datatype, whole.content)
    : Buffer.from(whole.content.b64, 'base64')
  const wanted = elementCount(row) * elementBytes(datatype)
  if (datatype !== 'BYTES' && bytes.byteLength !== wanted)
    throw new Error(`it has ${bytes.byteLength} bytes, and [${row.join(', ')}] of ${datatype} has ${wanted}`)
  const rows = batchSize ?? 1
  const shape = batchSize === undefined ? row : [rows, ...row]
  return {
    name,
    datatype,
    shape,
    data: rows === 1 ? bytes : Buffer.concat(Array.from({ length: rows }, () => bytes)),
  }
}
