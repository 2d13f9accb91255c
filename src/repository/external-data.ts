import { statSync } from 'node:fs'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { readOnnx } from './onnx-file.js'
import { readOnnxNodes } from './onnx-nodes.js'

/** A file that constants of a model lie in; undefined where it is not in the model's folder. */
export function fileBeside(modelPath: string, location: string): string | undefined {
  const file = join(dirname(modelPath), location)
  const inFolder = relative(dirname(modelPath), file)
  return isAbsolute(location) || inFolder.startsWith('..') ? undefined : file
}

/**
 * Bytes of the constants that a model has in files beside its own; those that share a place count once, and files that are not there not.
 *
 * @throws ModelInvalidError `GANTRY_MODEL_INVALID`
 */
export function externalBytes(modelPath: string): number {
  const places = new Map<string, number>()
  const { constants } = readOnnx(modelPath, readOnnxNodes)
  for (const { data } of constants.values()) {
    if (data?.location === undefined) continue
    const { location, offset } = data
    const file = fileBeside(modelPath, location)
    const fileBytes = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false })?.size
    if (fileBytes === undefined) continue
    const left = Math.max(0, fileBytes - offset)
    places.set(`${location} ${offset}`, Math.min(data.bytes ?? left, left))
  }
  return [...places.values()].reduce((sum, bytes) => sum + bytes, 0)
}
