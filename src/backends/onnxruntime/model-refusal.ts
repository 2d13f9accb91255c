import { systemLimitIn } from '../../lifecycle/system-limit.js'
import { plainReason } from './provider-reason.js'

/** What native code says where a card, its driver or its libraries are the cause: the model may be sound. */
const ofCard =
  /CUDA (?:failure|error) \d|(?:CUDNN|CUBLAS|CURAND|CUFFT|CUSPARSE|NCCL)\S* failure|CUDNN_STATUS|CUBLAS_STATUS|out of memory|bad_alloc|Failed to allocate memory|_ALLOC_FAILED|cannot open shared object|Failed to load shared library|\bXid\b|GPU is lost/i

/** The CPU has no kernel for it, so that it may be a model for the GPU alone; or this process no memory. */
const notOfModel = /NOT_IMPLEMENTED|Could not find an implementation|bad_alloc|Failed to allocate memory/i

/**
 * Why nothing runs a model that GPUs refused, so that it is not tried again for ever: the CPU's provider does not read it either. Undefined where
 * the card may be the cause.
 *
 * @param failures - what providers threw that are installed.
 * @param openOnCpu - opens it there and closes it again.
 */
export async function modelRefusal(
  failures: readonly unknown[],
  openOnCpu: () => Promise<void>,
): Promise<Readonly<{ reason: string; cause: unknown }> | undefined> {
  if (failures.length === 0 || failures.some((failure) => ofCard.test(textOf(failure)))) return undefined
  try {
    await openOnCpu()
    return undefined
  } catch (cause) {
    const text = textOf(cause)
    const isSound = notOfModel.test(text) || systemLimitIn(text) !== undefined
    return isSound ? undefined : { reason: plainReason(text), cause }
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
