import { statSync } from 'node:fs'
import type { ExecutionProvider } from '../../config/inference.js'
import { type NativeOptions, ProviderOptionsError } from './native-options.js'

/** Bytes that each session may take of a card; undefined without a limit. */
export function memoryLimitOf(
  { providerOptions }: NativeOptions,
  provider: ExecutionProvider,
): number | undefined {
  const limit = Number(providerOptions?.[provider]?.['gpu_mem_limit'])
  return limit > 0 ? limit : undefined
}

/**
 * Of a model that cannot be read whoever opens it tells.
 *
 * @throws ProviderOptionsError for a limit that not even the files of the model fit into, most of which are weights
 */
export async function checkMemoryLimit(
  path: string,
  options: NativeOptions,
  provider: ExecutionProvider,
): Promise<void> {
  const limit = memoryLimitOf(options, provider)
  const bytes = limit === undefined ? undefined : statSync(path, { throwIfNoEntry: false })?.size
  if (limit === undefined || bytes === undefined) return
  const beside = await bytesBeside(path)
  if (bytes + beside <= limit) return
  const files =
    beside === 0 ? `its file alone has ${bytes}` : `its file and the data beside it have ${bytes + beside}`
  throw new ProviderOptionsError(
    `gpu_mem_limit of ${provider} is ${limit} bytes, which is under what the model needs: ${files}`,
    'Raise gpu_mem_limit: it is of each session, and an instance has one for each size of batch.',
  )
}

/** What reads files of models is a library that most threads never need. */
async function bytesBeside(path: string): Promise<number> {
  const { externalBytes } = await import('../../repository/external-data.js')
  try {
    return externalBytes(path)
  } catch {
    return 0
  }
}
