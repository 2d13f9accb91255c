import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { tempDir } from './temp-dir.js'

/** A run of a session on the provider that charges for a change of shape. */
export type ShapedRun = Readonly<{ session: string; shapes: string; changed: boolean }>

/** What these workers lack. */
export function nothingIsMissing(): undefined {}

/** Workers that have CUDA, in the form of a CPU that charges for each change of a session's shapes. */
export const oneShapeWorkers = {
  detector: fileURLToPath(new URL('./one-shape-detector-worker.mjs', import.meta.url)),
  onnx: fileURLToPath(new URL('./one-shape-onnx-worker.mjs', import.meta.url)),
}

/** Collects the runs of the workers that are started in this test from now on. @returns reads those since the last call. */
export function recordShapes(): () => readonly ShapedRun[] {
  const file = join(tempDir(), 'shapes.jsonl')
  process.env.SHAPES_FILE = file
  onTestFinished(() => void delete process.env.SHAPES_FILE)
  let read = 0
  return () => {
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
    const runs = lines.slice(read).map((line) => JSON.parse(line) as ShapedRun)
    read = lines.length
    return runs
  }
}
