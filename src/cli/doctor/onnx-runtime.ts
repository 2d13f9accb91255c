import { createRequire } from 'node:module'
import { executionProviders, type ExecutionProvider } from '../../config/inference.js'
import { missingProviderReason } from '../../inference/providers.js'
import { entryPath } from '../../lifecycle/entry.js'
import type { Finding } from '../findings.js'
import { programOutput } from './program-output.js'

/** Whether ONNX Runtime can be loaded, and which of the providers it can be asked for. */
export async function examineOnnxRuntime(): Promise<Finding[]> {
  try {
    await import('../../inference/onnxruntime.js')
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    return [{ subject: 'onnxruntime', state: 'failed', detail, fix: 'npm ci' }]
  }
  return [
    { subject: 'onnxruntime', state: 'ok', detail: runtimeVersion() },
    ...(await Promise.all(executionProviders.map(examineProvider))),
  ]
}

async function examineProvider(provider: ExecutionProvider): Promise<Finding> {
  const reason = missingProviderReason(provider)
  const subject = `provider ${provider}`
  if (reason !== undefined) return { subject, state: 'skipped', detail: reason }
  if (provider === 'webgpu') return examineWebgpu()
  return { subject, state: 'ok', detail: provider === 'cpu' ? 'built in' : 'installed' }
}

/** Loads a model on it in a process of its own: what a driver does, or prints, stays there. */
export async function examineWebgpu(env: NodeJS.ProcessEnv = process.env): Promise<Finding> {
  const subject = 'provider webgpu'
  const entry = entryPath(import.meta.url, './webgpu-probe.js')
  // A look leaves no compiled shaders in the home folder.
  const withoutTrace = { ...env, MESA_SHADER_CACHE_DISABLE: 'true', __GL_SHADER_DISK_CACHE: '0' }
  if ((await programOutput(process.execPath, [entry], withoutTrace)) !== undefined)
    return { subject, state: 'ok', detail: 'built in, and a Vulkan driver runs a small model' }
  return {
    subject,
    state: 'warning',
    detail: 'built in, but no Vulkan driver runs a model',
    fix: 'install the driver of the card and libvulkan1 (Debian: mesa-vulkan-drivers), or leave webgpu out of inference.providers',
  }
}

function runtimeVersion(): string {
  const { version } = createRequire(import.meta.url)('onnxruntime-node/package.json') as { version: string }
  return version
}
