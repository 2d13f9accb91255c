import { readFileSync } from 'node:fs'
import type { ExecutionProvider } from '../../../config/inference.js'
import type { OptionTexts } from '../../../config/provider-options.js'
import type { OrtApi } from './ort-api.js'

/** What only a machine with a card shows: how a provider is told its options, and how its memory is reached. */

/** Functions of the C API for the options of a provider. */
const optionCalls = {
  cuda: {
    create: 'CreateCUDAProviderOptions',
    update: 'UpdateCUDAProviderOptions',
    append: 'SessionOptionsAppendExecutionProvider_CUDA_V2',
    release: 'ReleaseCUDAProviderOptions',
  },
  tensorrt: {
    create: 'CreateTensorRTProviderOptions',
    update: 'UpdateTensorRTProviderOptions',
    append: 'SessionOptionsAppendExecutionProvider_TensorRT_V2',
    release: 'ReleaseTensorRTProviderOptions',
  },
} as const

/** Has a session run on a provider, before those that are appended after it and the CPU. @throws Error */
export function appendProvider(
  api: OrtApi,
  sessionOptions: number,
  provider: ExecutionProvider,
  options: OptionTexts,
): void {
  if (provider === 'cpu') return
  if (provider === 'webgpu') throw new TypeError('webgpu has no options that only the C API takes')
  const { create, update, append, release } = optionCalls[provider]
  const made = api.made(create)
  try {
    api.call(update, made, Object.keys(options), Object.values(options), Object.keys(options).length)
    api.call(append, sessionOptions, made)
  } finally {
    api.release(release, made)
  }
}

/** An arena of a session by its name in ONNX Runtime, with the numbers of `OrtAllocatorType` and `OrtMemType`. */
export type Arena = Readonly<{ name: string; allocator: number; memory: number }>

/** Memory of a device, and that of the host which it reads and writes by itself. */
export type DeviceMemory = Readonly<{
  device: Arena
  host: Arena
  /** Copies between the two, and has copied when it returns. @throws Error */
  copy: (to: number, from: number, bytes: number, direction: 'to device' | 'to host') => void
}>

/** Of a provider that has a session by now: it is its library that brings the copying. @returns undefined where there is none. */
export function deviceMemory(api: OrtApi, provider: ExecutionProvider): DeviceMemory | undefined {
  if (provider !== 'cuda' && provider !== 'tensorrt') return undefined
  let copying: ReturnType<typeof cudaCopy> | undefined
  return {
    device: { name: 'Cuda', allocator: 0, memory: 0 },
    host: { name: 'CudaPinned', allocator: 0, memory: -1 },
    copy: (to, from, bytes, direction) => {
      copying ??= cudaCopy(api)
      copying(to, from, bytes, direction === 'to device' ? 1 : 2)
    },
  }
}

/** `cudaMemcpy` of the very library that the provider has loaded, whose version nobody else knows. */
function cudaCopy(api: OrtApi): (to: number, from: number, bytes: number, kind: number) => void {
  const path = /\S*\/libcudart\.so[.\d]*/.exec(readFileSync('/proc/self/maps', 'utf8'))?.[0]
  if (path === undefined) throw new Error('libcudart is not loaded, although CUDA runs a model')
  const library = api.native.load(path)
  const copy = library.named('cudaMemcpy', { gives: 'int', takes: ['address', 'address', 'size', 'int'] })
  const describe = library.named('cudaGetErrorString', { gives: 'text', takes: ['int'] })
  return (to, from, bytes, kind) => {
    const code = Number(copy(to, from, bytes, kind))
    if (code !== 0) throw new Error(`CUDA failure ${code}: ${String(describe(code))} ; `)
  }
}
