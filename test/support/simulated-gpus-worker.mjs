// Imported by a worker thread before anything else, it makes `cuda` a provider that is there, by `simulated-gpus.mjs`; where options ask for the C
// API, its functions for CUDA are those of `simulated-device.mjs`.
import fs from 'node:fs'
import { registerHooks, syncBuiltinESMExports } from 'node:module'
import ort from 'onnxruntime-node'
import { addSimulatedGpus } from './simulated-gpus.mjs'

const { existsSync } = fs
fs.existsSync = (path) => /libonnxruntime_providers_cuda\.so$/.test(String(path)) || existsSync(path)
syncBuiltinESMExports()
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === './device.js' && /\/c-api\//.test(context.parentURL)
      ? { url: new URL('./simulated-device.mjs', import.meta.url).href, shortCircuit: true }
      : next(specifier, context),
})
addSimulatedGpus(ort)
