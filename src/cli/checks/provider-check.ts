import { execFile } from 'node:child_process'
import type { ExecutionProvider, InferenceConfig } from '../../config/inference.js'
import { deviceOf, missingProviderReason } from '../../backends/onnxruntime/providers.js'
import { entryPath } from '../../lifecycle/entry.js'
import type { Finding } from '../findings.js'

/** Longest that a driver may take to run a small model for the first time. */
const probeAtMostMs = 30_000

/** How a provider stands on this machine. */
export type ProviderState = Readonly<{
  provider: ExecutionProvider
  state: 'runs' | 'fails' | 'not installed'
  /** Why it does not run; empty where it does. */
  reason: string
}>

/** Runs a small model on a provider that is installed, in a process of its own: what a driver does, or prints, stays there. */
export async function lookAtProvider(
  provider: ExecutionProvider,
  deviceId: number,
  env: NodeJS.ProcessEnv = process.env,
): Promise<ProviderState> {
  const missing = missingProviderReason(provider)
  if (missing !== undefined) return { provider, state: 'not installed', reason: missing }
  if (provider === 'cpu') return { provider, state: 'runs', reason: '' }
  const reason = await probe(provider, deviceId, env)
  return reason === undefined ? { provider, state: 'runs', reason: '' } : { provider, state: 'fails', reason }
}

/** What to do about an installed provider that fails. */
export function providerFix(provider: ExecutionProvider): string {
  if (provider === 'webgpu')
    return 'install the driver of the card and libvulkan1 (Debian: mesa-vulkan-drivers), or leave webgpu out of inference.providers'
  return `remedy that, or leave ${provider} out of inference.providers; which CUDA a library needs and where there are others: docs/models.md, "Where models run"`
}

/** In the configured order up to the first that runs, which is where models go. */
export async function lookAtProviders({
  providers,
  deviceId,
}: InferenceConfig): Promise<readonly ProviderState[]> {
  const states: ProviderState[] = []
  for (const provider of providers) {
    const state = await lookAtProvider(provider, deviceId)
    states.push(state)
    if (state.state === 'runs') break
  }
  return states
}

/** Where models run. */
export function runningProvider(states: readonly ProviderState[]): ExecutionProvider | undefined {
  return states.find(({ state }) => state === 'runs')?.provider
}

export function runsOnGpu(states: readonly ProviderState[]): boolean {
  const provider = runningProvider(states)
  return provider !== undefined && deviceOf(provider) === 'gpu'
}

/** Where models run, and why not where they were to run first. */
export function providerFinding(states: readonly ProviderState[]): Finding {
  const notes = states
    .filter(({ state }) => state !== 'runs')
    .map(({ provider, reason }) => `${provider}: ${reason}`)
  const subject = 'providers'
  const used = runningProvider(states)
  if (used === undefined)
    return { subject, state: 'failed', detail: notes.join('; '), fix: 'add cpu to inference.providers' }
  const detail = [`${used} runs the models`, ...notes].join('; ')
  const failing = states.find(({ state }) => state === 'fails')
  if (failing === undefined) return { subject, state: 'ok', detail }
  return { subject, state: 'warning', detail, fix: providerFix(failing.provider) }
}

/** @returns why no model runs there. */
function probe(
  provider: ExecutionProvider,
  deviceId: number,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  const args = [entryPath(import.meta.url, './provider-probe.js'), provider, String(deviceId)]
  // A look leaves no compiled shaders in the home folder.
  const withoutTrace = { ...env, MESA_SHADER_CACHE_DISABLE: 'true', __GL_SHADER_DISK_CACHE: '0' }
  const options = { timeout: probeAtMostMs, killSignal: 'SIGKILL' as const, env: withoutTrace }
  return new Promise((resolve) => {
    execFile(process.execPath, args, options, (error, stdout) => {
      if (error === null) resolve(undefined)
      else if (stdout.trim() !== '') resolve(stdout.trim())
      else if (error.killed === true) resolve(`a small model has not run within ${probeAtMostMs / 1_000} s`)
      else resolve(`the process that tried it ended with ${error.signal ?? `code ${String(error.code)}`}`)
    })
  })
}
