/** Where a provider was to run. */
export type ProviderPlace = Readonly<{
  deviceId: number
  /** GPUs of this machine; `undefined` where nothing tells. */
  gpus: number | undefined
}>

/**
 * What native code says of a provider or a run on it, in words for people: which library is missing, which GPU is not there or is
 * full. Places in C++ and the name of the host are left out.
 */
export function providerReason(text: string, place: ProviderPlace): string {
  const library = /([\w.+-]+\.so[\w.]*): cannot open shared object file/.exec(text)?.[1]
  if (library !== undefined) return `${library} is missing${originOf(library)}`
  const cuda = /CUDA failure (\d+): ([^;\n]*)/.exec(text)
  if (cuda !== null) return cudaReason(Number(cuda[1]), (cuda[2] ?? '').trim(), place)
  const other = /(CUDNN|CUBLAS|CURAND|CUFFT|CUSPARSE|NCCL)(?:_FE)? failure (\d+): ([^;\n]*)/.exec(text)
  if (/Failed to allocate memory|_ALLOC_FAILED|out of memory|bad_alloc/i.test(text))
    return `GPU ${place.deviceId} is out of memory`
  if (other !== null)
    return `GPU ${place.deviceId}: ${(other[3] ?? '').trim()} (${other[1]} error ${other[2]})`
  return firstSentence(text)
}

/** By the numbers of `cudaError_t`. */
function cudaReason(code: number, text: string, { deviceId, gpus }: ProviderPlace): string {
  switch (code) {
    case 2:
      return `GPU ${deviceId} is out of memory`
    case 35:
      return 'the NVIDIA driver is too old for the CUDA that is installed'
    case 100:
      return 'this machine has no GPU that CUDA can use'
    case 101:
      return `GPU ${deviceId} does not exist; ${listed(gpus)}`
    case 209:
      return `GPU ${deviceId} is of a kind that the installed library was not built for`
    default:
      return `GPU ${deviceId}: ${text} (CUDA error ${code})`
  }
}

function listed(gpus: number | undefined): string {
  if (gpus === undefined) return '`nvidia-smi -L` lists those there are'
  if (gpus === 0) return 'this machine has none'
  return gpus === 1 ? 'this machine has GPU 0' : `this machine has GPUs 0 to ${gpus - 1}`
}

function originOf(library: string): string {
  const major = /\.so\.(\d+)/.exec(library)?.[1] ?? ''
  if (/^libcuda\.so/.test(library)) return ': it comes with the NVIDIA driver'
  if (/^libcudnn/.test(library)) return `: it is part of cuDNN ${major}`.trimEnd()
  if (/^libnv(infer|onnxparser)/.test(library)) return `: it is part of TensorRT ${major}`.trimEnd()
  if (/^lib(cublas|cublasLt|cudart|nvrtc|nvJitLink)\b/.test(library))
    return `: it is part of CUDA ${major}`.trimEnd()
  if (/^lib(cufft|curand|cusparse|cusolver|nv)/.test(library)) return ': it is part of CUDA'
  return ''
}

/** ONNX Runtime's messages begin with the place in its source and the check that failed; the reason comes behind them. */
function firstSentence(text: string): string {
  return (text.split('\n')[0] ?? '')
    .replace(/^\/onnxruntime_src\/\S+ (.* was false\. )?/, '')
    .replace(/ ?; ?(hostname|file|line|expr)=[^;]*/g, '')
    .trim()
}
