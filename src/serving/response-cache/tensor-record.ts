import { z } from 'zod'
import { copyAllInTurns } from '../../tensors/tensor-buffers.js'
import { datatypes } from '../../tensors/element-type.js'
import type { Tensor } from '../../tensors/tensor.js'

/** An answer as one record: length of a JSON header, the header, the bytes of the tensors in its order. */
const headerSchema = z.array(
  z.strictObject({
    name: z.string(),
    datatype: z.enum(datatypes),
    shape: z.array(z.number().int().min(0)),
    bytes: z.number().int().min(0),
  }),
)

export async function encodeTensors(tensors: readonly Tensor[]): Promise<Buffer> {
  const header = Buffer.from(
    JSON.stringify(
      tensors.map(({ name, datatype, shape, data }) => ({ name, datatype, shape, bytes: data.byteLength })),
    ),
  )
  const length = Buffer.alloc(4)
  length.writeUInt32LE(header.byteLength)
  const parts = [length, header, ...tensors.map(({ data }) => data)]
  const record = Buffer.allocUnsafeSlow(parts.reduce((sum, { byteLength }) => sum + byteLength, 0))
  await copyAllInTurns(parts, record)
  return record
}

/** @throws for anything that {@link encodeTensors} did not write. */
export function decodeTensors(record: Buffer): readonly Tensor[] {
  const headerEnd = 4 + record.readUInt32LE(0)
  const header = headerSchema.parse(JSON.parse(record.subarray(4, headerEnd).toString('utf8')))
  let at = headerEnd
  const tensors = header.map(({ bytes, ...tensor }) => {
    at += bytes
    return { ...tensor, data: record.subarray(at - bytes, at) }
  })
  if (at !== record.byteLength) throw new RangeError('record has another length than its header says')
  return tensors
}
