/** Element types of the KServe v2 protocol. */
export const datatypes = [
  'BOOL',
  'UINT8',
  'UINT16',
  'UINT32',
  'UINT64',
  'INT8',
  'INT16',
  'INT32',
  'INT64',
  'FP16',
  'FP32',
  'FP64',
  'BF16',
  'BYTES',
] as const
export type Datatype = (typeof datatypes)[number]

const bytesOf: Readonly<Record<Datatype, number>> = {
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
  FP32: 4,
  FP64: 8,
  BF16: 2,
  BYTES: 0,
}

/** Bytes of one element; 0 for BYTES, whose elements have lengths of their own. */
export function elementBytes(datatype: Datatype): number {
  return bytesOf[datatype]
}

/** `TYPE_FP32` -> `FP32`, `TYPE_STRING` -> `BYTES`; `undefined` for `TYPE_INVALID` and names that are none. */
export function datatypeOfConfig(dataType: string): Datatype | undefined {
  const name = dataType === 'TYPE_STRING' ? 'BYTES' : dataType.replace(/^TYPE_/, '')
  return datatypes.find((datatype) => datatype === name)
}

/** `FP32` -> `TYPE_FP32`, `BYTES` -> `TYPE_STRING`. */
export function configOfDatatype(datatype: Datatype): string {
  return datatype === 'BYTES' ? 'TYPE_STRING' : `TYPE_${datatype}`
}
