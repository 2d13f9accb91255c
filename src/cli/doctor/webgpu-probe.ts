import { writeSync } from 'node:fs'
import ort from '../../inference/onnxruntime.js'

/** Entry of the look at WebGPU: runs one small model on it and ends with 0, or 1 with the reason on stderr. */

/** `y = Relu(x)` of four float32 values, as an ONNX file. */
const relu =
  'CAgSDGdhbnRyeS10ZXN0czo/ChQKAXgSAXkaBlJlbHVfMCIEUmVsdRIFZ3JhcGhaDwoBeBIKCggIARIECgIIBGIPCgF5EgoKCAgBEgQKAggEQgIQEQ=='

try {
  const session = await ort.InferenceSession.create(Buffer.from(relu, 'base64'), {
    executionProviders: ['webgpu'],
    logSeverityLevel: 4,
  })
  await session.run({ x: new ort.Tensor('float32', new Float32Array(4), [4]) })
  // Nothing is released: the process ends here.
  process.exit(0)
} catch (error) {
  writeSync(2, `${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
