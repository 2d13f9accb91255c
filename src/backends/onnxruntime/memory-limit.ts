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

/** @throws ProviderOptionsError for a limit that not even the file of the model fits into, most of which are weights */
export function checkMemoryLimit(path: string, options: NativeOptions, provider: ExecutionProvider): void {
  const limit = memoryLimitOf(options, provider)
  const bytes = limit === undefined ? undefined : statSync(path, { throwIfNoEntry: false })?.size
  if (limit === undefined || bytes === undefined || bytes <= limit) return
  throw new ProviderOptionsError(
    `gpu_mem_limit of ${provider} is ${limit} bytes, which is under what the model needs: its file alone has ${bytes}`,
    'Raise gpu_mem_limit: it is of each session, and an instance has one for each size of batch.',
  )
}
