import { readFileSync } from 'node:fs'
import { readOnnxFile } from '../repository/onnx-file.js'
import { withAddition } from '../repository/onnx-writer.js'
import type { DetectorCandidate } from './detector-protocol.js'
import type { HeadPlan } from './heads/head.js'
import { topRows } from './heads/top-rows.js'

/**
 * A detector whose graph hands over the best rows of its head alone, and how those are read.
 *
 * @returns a clause why the head is read whole, where it cannot.
 */
export function thinnedModel({
  session: { path },
  head,
  input,
  exportedSize,
  topRows: rows,
}: DetectorCandidate): Readonly<{ altered: () => Uint8Array; head: HeadPlan }> | string {
  if (rows === 0) return 'gantry.head_top_rows is 0'
  if (exportedSize !== undefined) return 'the size of its input is tried first'
  const top = topRows(head, input.size, readOnnxFile(path), rows)
  if (typeof top === 'string') return top
  return { altered: () => withAddition(readFileSync(path), top.addition), head: top.head }
}
