import { writeSync } from 'node:fs'
import type { ExecutionProvider } from '../../config/inference.js'
import ort from './onnxruntime.js'
import { providerFailure } from './provider-failure.js'
import { takesDevice } from './providers.js'

/**
 * Entry of the look at a provider: runs one small model on it and ends with 0, or 1 with the reason on stdout. What native code
 * prints is on stderr.
 *
 * usage: provider-probe PROVIDER DEVICE_ID
 */

/** A convolution of 3 x 3 over float32 `[1, 1, 4, 4]`, as an ONNX file: what detectors are made of, and what CUDA asks cuDNN for. */
const convolution =
  'CAgSDGdhbnRyeS10ZXN0czqNAQoXCgF4CgF3EgF5GgZDb252XzAiBENvbnYSBWdyYXBoKjEKBAEBAwMQAUIBd0okAACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8A' +
  'AIA/WhsKAXgSFgoUCAESEAoCCAEKAggBCgIIBAoCCARiGwoBeRIWChQIARIQCgIIAQoCCAEKAggCCgIIAkICEBE='

const provider = process.argv[2] as ExecutionProvider
const deviceId = Number(process.argv[3])
try {
  const session = await ort.InferenceSession.create(Buffer.from(convolution, 'base64'), {
    executionProviders: [takesDevice(provider) ? { name: provider, deviceId } : provider],
    logSeverityLevel: 4,
  })
  await session.run({ x: new ort.Tensor('float32', new Float32Array(16), [1, 1, 4, 4]) })
  // Nothing is released: the process ends here.
  process.exit(0)
} catch (error) {
  writeSync(1, `${providerFailure(error, provider, deviceId)}\n`)
  process.exit(1)
}
