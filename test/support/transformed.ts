import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ort from '../../src/backends/onnxruntime/onnxruntime.js'
import { ortTensor } from '../../src/backends/onnxruntime/ort-tensor.js'
import {
  elementType,
  frameElements,
  type InputPlan,
  inputShape,
  writeFrame,
} from '../../src/detector/input-tensor.js'
import { tempDir } from './temp-dir.js'

/** A model file of the running test. */
export function modelFile(bytes: Uint8Array, name = 'model.onnx'): string {
  const path = join(tempDir(), name)
  writeFileSync(path, bytes)
  return path
}

/** RGB bytes of a picture, the same for the same seed. */
export function noise({ widthPx, heightPx }: InputPlan['size'], seed = 1): Uint8Array {
  return Uint8Array.from(
    { length: widthPx * heightPx * 3 },
    (_, at) => (Math.sin(at * 12.9898 + seed * 78.233) * 43758.5453) & 255,
  )
}

/** Values of the outputs of a model for pictures that enter as its plan says. */
export async function answersOf(
  model: string | Uint8Array,
  plan: InputPlan,
  pictures: readonly Uint8Array[],
): Promise<Readonly<Record<string, Readonly<{ dims: readonly number[]; values: readonly number[] }>>>> {
  const length = frameElements(plan)
  const kind = elementType(plan.layout) === 'float32' ? Float32Array : Uint8Array
  const values = new kind(length * pictures.length)
  for (const [at, picture] of pictures.entries())
    writeFrame(plan, Uint8Array.from(picture).buffer, values, at * length)
  const session = await ort.InferenceSession.create(typeof model === 'string' ? model : modelFile(model), {
    logSeverityLevel: 3,
  })
  try {
    const type = elementType(plan.layout)
    const answers = await session.run({
      [plan.name]: ortTensor(type, values, inputShape(plan, pictures.length)),
    })
    return Object.fromEntries(
      Object.entries(answers).map(([name, { dims, data }]) => [
        name,
        { dims, values: Array.from(data as Float32Array) },
      ]),
    )
  } finally {
    await session.release()
  }
}
