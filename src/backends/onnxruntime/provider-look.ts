import { execFile } from 'node:child_process'
import type { ExecutionProvider } from '../../config/inference.js'
import { entryPath } from '../../lifecycle/entry.js'
import { missingProviderReason } from './providers.js'

/** Longest that a driver may take to run a small model for the first time. */
const probeAtMostMs = 30_000

/** How a provider stands on this machine. */
export type ProviderState = Readonly<{
  provider: ExecutionProvider
  state: 'runs' | 'fails' | 'not installed'
  /** Why it does not run; empty where it does. */
  reason: string
}>

export type LookOptions = Readonly<{
  env?: NodeJS.ProcessEnv
  /** Ends the look. */
  signal?: AbortSignal
}>

/** Runs a small model on a provider that is installed, in a process of its own: what a driver does, or prints, stays there. */
export async function lookAtProvider(
  provider: ExecutionProvider,
  deviceId: number,
  { env = process.env, signal }: LookOptions = {},
): Promise<ProviderState> {
  const missing = missingProviderReason(provider)
  if (missing !== undefined) return { provider, state: 'not installed', reason: missing }
  if (provider === 'cpu') return { provider, state: 'runs', reason: '' }
  const reason = await probe(provider, deviceId, env, signal)
  return reason === undefined ? { provider, state: 'runs', reason: '' } : { provider, state: 'fails', reason }
}

/** @returns why no model runs there. */
function probe(
  provider: ExecutionProvider,
  deviceId: number,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const args = [entryPath(import.meta.url, './provider-probe.js'), provider, String(deviceId)]
  // A look leaves no compiled shaders in the home folder.
  const withoutTrace = { ...env, MESA_SHADER_CACHE_DISABLE: 'true', __GL_SHADER_DISK_CACHE: '0' }
  const options = {
    timeout: probeAtMostMs,
    killSignal: 'SIGKILL' as const,
    env: withoutTrace,
    ...(signal && { signal }),
  }
  return new Promise((resolve) => {
    execFile(process.execPath, args, options, (error, stdout) => {
      if (error === null) resolve(undefined)
      else if (stdout.trim() !== '') resolve(stdout.trim())
      else if (error.killed === true) resolve(`a small model has not run within ${probeAtMostMs / 1_000} s`)
      else resolve(`the process that tried it ended with ${error.signal ?? `code ${String(error.code)}`}`)
    })
  })
}
