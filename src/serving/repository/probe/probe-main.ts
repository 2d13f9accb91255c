import { writeSync } from 'node:fs'
import ort from '../../../backends/onnxruntime/onnxruntime.js'
import { emptyTensor } from '../../../backends/onnxruntime/ort-tensor.js'
import { begun, type ProbeAnswer, type ProbeTask } from './probe-protocol.js'

/** Entry of the probe: loads a model and runs it once on zeros, in a process that may die of it. */
const task = JSON.parse(process.argv[2] ?? '') as ProbeTask

function answer(given: ProbeAnswer): never {
  writeSync(1, `${JSON.stringify(given)}\n`)
  // Nothing is released: the process ends here.
  process.exit(0)
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function zeros(metadata: ort.InferenceSession.ValueMetadata): ort.Tensor {
  if (!metadata.isTensor) throw new Error(`input ${metadata.name} is no tensor`)
  const shape =
    task.shapes[metadata.name] ??
    metadata.shape.map((size) => (typeof size === 'number' && size > 0 ? size : 1))
  return emptyTensor(metadata.type, shape)
}

async function runOnce(session: ort.InferenceSession): Promise<string | undefined> {
  try {
    await session.run(Object.fromEntries(session.inputMetadata.map((input) => [input.name, zeros(input)])))
    return undefined
  } catch (error) {
    return textOf(error)
  }
}

writeSync(1, `${begun}\n`)
try {
  const session = await ort.InferenceSession.create(task.modelPath, {
    executionProviders: ['cpu'],
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 4,
  })
  answer({ loaded: true, runError: await runOnce(session) })
} catch (error) {
  answer({ loaded: false, error: textOf(error) })
}
