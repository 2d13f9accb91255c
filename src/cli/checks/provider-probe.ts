import { writeSync } from 'node:fs'
import ort from '../../backends/onnxruntime/onnxruntime.js'
import type { ExecutionProvider } from '../../config/inference.js'
import { providerFailure } from '../../backends/onnxruntime/provider-failure.js'

/**
 * Entry of the look at a provider: runs one small model on it and ends with 0, or 1 with the reason on stdout. What native code
 * prints is on stderr.
 *
 * usage: provider-probe PROVIDER DEVICE_ID
 */

/** `y = Relu(x)` of four float32 values, as an ONNX file. */
const relu =
  'CAgSDGdhbnRyeS10ZXN0czo/ChQKAXgSAXkaBlJlbHVfMCIEUmVsdRIFZ3JhcGhaDwoBeBIKCggIARIECgIIBGIPCgF5EgoKCAgBEgQKAggEQgIQEQ=='

const provider = process.argv[2] as ExecutionProvider
const deviceId = Number(process.argv[3])
try {
  const onDevice = provider === 'cuda' || provider === 'tensorrt'
  const session = await ort.InferenceSession.create(Buffer.from(relu, 'base64'), {
    executionProviders: [onDevice ? { name: provider, deviceId } : provider],
    logSeverityLevel: 4,
  })
  await session.run({ x: new ort.Tensor('float32', new Float32Array(4), [4]) })
  // Nothing is released: the process ends here.
  process.exit(0)
} catch (error) {
  writeSync(1, `${providerFailure(error, provider, deviceId)}\n`)
  process.exit(1)
}
