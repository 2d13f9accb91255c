import { isStickyCode } from './sticky-failure.js'

/** Memory of a GPU. */
export type GpuMemory = Readonly<{ usedBytes: number; totalBytes: number }>

/** Where a provider was to run, and what the machine tells of it; `undefined` is what nothing tells. */
export type ProviderPlace = Readonly<{
  /** As CUDA counts; `undefined` where the provider takes what GPU there is. */
  deviceId: number | undefined
  /** GPUs of this machine. */
  gpus: number | undefined
  /** Asked only where the reason is its memory. */
  memory?: () => GpuMemory | undefined
  /** Version of the NVIDIA driver; asked only where the reason is the driver. */
  driver?: () => string | undefined
}>

/** No reason is longer. */
const mostLetters = 300

/**
 * What native code says of a provider or a run on it, in words for people: which library is missing, which GPU is not there, full or
 * broken. Places in C++ and the name of the host are left out.
 */
export function providerReason(text: string, place: ProviderPlace): string {
  const library = missingLibraryIn(text)
  if (library !== undefined) return missingLibrariesText([library])
  const cuda = /CUDA failure (\d+): ([^;\n]*)/.exec(text)
  if (cuda !== null) return cudaReason(Number(cuda[1]), (cuda[2] ?? '').trim(), place)
  if (/\bXid\b|fallen off the bus|GPU is lost/i.test(text))
    return `${nameOf(place)} is lost: dmesg has the reason (Xid), a reset of the card or of the machine brings it back`
  if (isUnfit(text))
    return `${nameOf(place)} lacks what the model computes with, such as float16: use the float32 model there`
  if (/Failed to allocate memory|_ALLOC_FAILED|out of memory|bad_alloc/i.test(text)) return outOfMemory(place)
  const other = /(CUDNN|CUBLAS|CURAND|CUFFT|CUSPARSE|NCCL)(?:_FE)? failure (\d+): ([^;\n]*)/.exec(text)
  if (other !== null) return `${nameOf(place)}: ${(other[3] ?? '').trim()} (${other[1]} error ${other[2]})`
  const reason = plainReason(text)
  return reason.length <= mostLetters ? reason : `${reason.slice(0, mostLetters - 1)}…`
}

/** Whether a card lacks what the model computes with, so that it will never run it. */
export function isUnfit(text: string): boolean {
  return /ARCH_MISMATCH|shader-f16|\bf16\b.*\b(not|un)/i.test(text)
}

/** The library that the loader of the system does not find. */
export function missingLibraryIn(text: string): string | undefined {
  return /([\w.+-]+\.so[\w.]*): cannot open shared object file/.exec(text)?.[1]
}

/** @param libraries - at least one. */
export function missingLibrariesText(libraries: readonly string[]): string {
  const origins = new Set(libraries.map(originOf).filter((origin) => origin !== undefined))
  if ([...origins].some((origin) => /^CUDA \d/.test(origin))) origins.delete('CUDA')
  const missing = `${listed(libraries)} ${libraries.length === 1 ? 'is' : 'are'} missing`
  if (origins.size === 0) return missing
  const isInstalled = libraries.every((library) => originOf(library) === driver)
  return `${missing}: install ${listed([...origins])}${isInstalled ? '' : ', or name the folder in LD_LIBRARY_PATH'}`
}

/** By the numbers of `cudaError_t`. */
function cudaReason(code: number, text: string, place: ProviderPlace): string {
  const gpu = nameOf(place)
  switch (code) {
    case 2:
      return outOfMemory(place)
    case 3:
    case 999:
      return `CUDA cannot be used on ${gpu} (CUDA error ${code}: ${text}): \`nvidia-smi\` tells whether driver and card work`
    case 35:
    case 36:
    case 222:
      return `the NVIDIA driver${versionOf(place)} is too old for the CUDA that is installed: install a newer one, or the library for an older CUDA`
    case 46:
      return `${gpu} is taken by another process alone: \`nvidia-smi -c DEFAULT\` lets several use it`
    case 100:
      return 'this machine has no GPU that CUDA can use'
    case 101:
      return `${gpu} does not exist; ${gpusOf(place)}`
    case 209:
      return `${gpu} is of a kind that the installed library was not built for`
    case 802:
      return `${gpu} is not ready: the fabric manager of the cards does not run yet (CUDA error 802)`
    case 803:
    case 804:
      return `the NVIDIA driver${versionOf(place)} and its libraries are of versions that do not go together: start the machine again after an update, or install both anew`
    default:
      return `${gpu}: ${text} (CUDA error ${code})${isStickyCode(code) ? '; this process can use the card no more, until it is started again' : ''}`
  }
}

function outOfMemory(place: ProviderPlace): string {
  const memory = place.memory?.()
  const figures =
    memory === undefined ? '' : `: ${gib(memory.usedBytes)} of ${gib(memory.totalBytes)} GiB used`
  return `${nameOf(place)} is out of memory${figures}`
}

function gib(bytes: number): number {
  return Math.round((bytes / 1024 ** 3) * 10) / 10
}

function nameOf({ deviceId }: ProviderPlace): string {
  return deviceId === undefined ? 'the GPU' : `GPU ${deviceId}`
}

function versionOf(place: ProviderPlace): string {
  const version = place.driver?.()
  return version === undefined ? '' : ` ${version}`
}

function gpusOf({ gpus }: ProviderPlace): string {
  if (gpus === undefined) return '`nvidia-smi -L` lists those there are'
  if (gpus === 0) return 'this machine has none'
  return gpus === 1 ? 'this machine has GPU 0' : `this machine has GPUs 0 to ${gpus - 1}`
}

const driver = 'the NVIDIA driver'

/** What brings a library. */
function originOf(library: string): string | undefined {
  const major = /\.so\.(\d+)/.exec(library)?.[1] ?? ''
  if (/^lib(cuda|nvidia-ml)\.so/.test(library)) return driver
  if (/^libcudnn/.test(library)) return `cuDNN ${major}`.trimEnd()
  if (/^libnv(infer|onnxparser)/.test(library)) return `TensorRT ${major}`.trimEnd()
  if (/^lib(cublas|cublasLt|cudart|nvrtc|nvJitLink)\b/.test(library)) return `CUDA ${major}`.trimEnd()
  // Their numbers are not those of CUDA.
  if (/^lib(cufft|curand|cusparse|cusolver|nv)/.test(library)) return 'CUDA'
  return undefined
}

function listed(names: readonly string[]): string {
  const last = names.at(-1) ?? ''
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} and ${last}`
}

/**
 * ONNX Runtime's messages begin with places in its source, the functions there and the check that failed, sometimes several times; the
 * reason comes behind them.
 */
export function plainReason(text: string): string {
  return (text.split('\n')[0] ?? '')
    .replace(placeInSource, '')
    .replace(/^.* was false\. /, '')
    .replace(/ ?; ?(hostname|file|line|expr)=[^;]*/g, '')
    .trim()
}

/** File and line, and the signature of the function, where it is given. */
const placeInSource =
  /\S*onnxruntime[\\/]\S+:\d+ (?:[\w:<>~*&, ]*::[\w~]+\([^()]*\)(?: const)?(?: \[with [^\]]*\])? )?/g
