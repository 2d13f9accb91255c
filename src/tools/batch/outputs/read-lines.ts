import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { BatchLine } from '../../../messages/batch-line.js'

/** The lines that a run has kept, one by one. */
export async function* readBatchLines(path: string): AsyncGenerator<BatchLine, void> {
  for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Infinity }))
    yield JSON.parse(text) as BatchLine
}
