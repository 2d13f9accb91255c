/** Why the hardware that a decoder was told to use was of no use. */
export type HardwareFailure = Readonly<{
  /** One clause for people. */
  reason: string
  /** It may decode all the same, without scaling. */
  ofScaling: boolean
}>

type Cause = Readonly<{ pattern: RegExp; reason: (gpu: string) => string; ofScaling?: true }>

/** In ffmpeg's words and CUDA's; the first that is found counts, so that what lies deeper comes first. */
const causes: readonly Cause[] = [
  { pattern: /CUDA_ERROR_OUT_OF_MEMORY/, reason: (gpu) => `${gpu} has no memory left for a decoder` },
  { pattern: /CUDA_ERROR_INVALID_DEVICE/, reason: (gpu) => `${gpu} does not exist` },
  { pattern: /CUDA_ERROR_NO_DEVICE/, reason: () => 'this machine has no GPU that CUDA can use' },
  {
    pattern: /Cannot load libcuda\.|Could not dynamically load CUDA/,
    reason: () => 'the NVIDIA driver (libcuda.so.1) is not there',
  },
  {
    pattern: /libnvcuvid|Failed loading nvcuvid/,
    reason: () => 'the part of the NVIDIA driver that decodes video (libnvcuvid.so.1) is not there',
  },
  {
    pattern: /^\[Parsed_scale_cuda\w* @ \w+\] \[(error|fatal)\]|No such filter: 'scale_cuda'/,
    reason: (gpu) => `${gpu} does not scale the pictures`,
    ofScaling: true,
  },
  {
    pattern:
      /Failed setup for format|CUDA_ERROR_NOT_SUPPORTED|Hardware is lacking|Impossible to convert between the formats/,
    reason: (gpu) => `${gpu} does not decode such a stream`,
  },
  { pattern: /\bCUDA_ERROR_\w+/, reason: (gpu) => `${gpu} fails` },
  {
    pattern:
      /Device setup failed for decoder|No device available for decoder|Device creation failed|hwaccel.*(fail|not)/i,
    reason: () => 'no device opens',
  },
]

/** What keeps pictures of ten bits a sample from being brought back as eight. */
const tenBits = /Invalid output format nv12 for hwframe download/

/**
 * @param tail - last lines of the decoder.
 * @param gpu - what people call the device.
 * @returns `undefined` where the decoder ended for another reason.
 */
export function hardwareFailure(tail: readonly string[], gpu: string): HardwareFailure | undefined {
  for (const { pattern, reason, ofScaling = false } of causes)
    if (tail.some((line) => pattern.test(line))) return { reason: reason(gpu), ofScaling }
  return undefined
}

export function needsTenBits(tail: readonly string[]): boolean {
  return tail.some((line) => tenBits.test(line))
}
