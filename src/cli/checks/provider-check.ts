import { devicesOf, type ExecutionProvider, type InferenceConfig } from '../../config/inference.js'
import { listGpus } from '../../backends/onnxruntime/gpu-list.js'
import { gpuCount } from '../../backends/onnxruntime/nvidia-cards.js'
import { lookAtProvider, type ProviderState } from '../../backends/onnxruntime/provider-look.js'
import {
  deviceOf,
  gpuProvidersOf,
  missingProviderReason,
  takesDevice,
} from '../../backends/onnxruntime/providers.js'
import type { Finding } from '../findings.js'

/** What to do about an installed provider that fails. */
export function providerFix(provider: ExecutionProvider): string {
  if (provider === 'webgpu')
    return 'install the driver of the card and libvulkan1 (Debian: mesa-vulkan-drivers), or leave webgpu out of inference.providers'
  if (provider === 'cuda')
    return 'remedy that (`gantry gpu install` brings libraries that are missing), or leave cuda out of inference.providers; see docs/models.md, "On a GPU"'
  return `remedy that, or leave ${provider} out of inference.providers; see docs/models.md, "On a GPU"`
}

/** In the configured order up to the first that runs, which is where models go; of several GPUs on the first where it does. */
export async function lookAtProviders(inference: InferenceConfig): Promise<readonly ProviderState[]> {
  const states: ProviderState[] = []
  const devices = await devicesToTry(inference)
  for (const provider of inference.providers) {
    const state = await lookAtDevices(provider, takesDevice(provider) ? devices : [0])
    states.push(state)
    if (state.state === 'runs') break
  }
  return states
}

/** GPUs by number that models are to run on; one at least. */
export async function devicesToTry(inference: InferenceConfig): Promise<readonly number[]> {
  const asked = devicesOf(inference)
  const devices = asked === 'auto' ? await listGpus() : asked
  return devices.length === 0 ? [0] : devices
}

async function lookAtDevices(
  provider: ExecutionProvider,
  [first = 0, ...others]: readonly number[],
): Promise<ProviderState> {
  const state = await lookAtProvider(provider, first)
  for (const device of state.state === 'fails' ? others : []) {
    const other = await lookAtProvider(provider, device)
    if (other.state === 'runs') return other
  }
  return state
}

/** Of several GPUs, how each stands; and a setting that was replaced. */
export async function deviceFindings(inference: InferenceConfig): Promise<readonly Finding[]> {
  const provider = gpuProvidersOf(inference.providers).find(
    (each) => takesDevice(each) && missingProviderReason(each) === undefined,
  )
  const devices = await devicesToTry(inference)
  const states =
    provider === undefined || devices.length < 2
      ? []
      : await Promise.all(
          devices.map(async (device) => ({ device, ...(await lookAtProvider(provider, device)) })),
        )
  return [
    ...replacedSetting(inference),
    ...(provider === undefined ? [] : idleDevices(inference)),
    ...states.map(deviceFinding),
  ]
}

/** GPUs that nobody has decided about. */
function idleDevices({ devices, deviceId }: InferenceConfig): readonly Finding[] {
  const count = gpuCount() ?? 1
  if (count < 2 || devices !== undefined || deviceId !== undefined) return []
  const detail = `GPU 0 of ${count} is used; with inference.devices: auto all are`
  return [{ subject: 'GPUs', state: 'ok', detail }]
}

function replacedSetting({ deviceId }: InferenceConfig): readonly Finding[] {
  if (deviceId === undefined) return []
  const fix = `write inference.devices: [${deviceId}]`
  return [{ subject: 'settings', state: 'warning', detail: 'inference.deviceId is replaced by devices', fix }]
}

function deviceFinding({
  device,
  provider,
  state,
  reason,
}: ProviderState & Readonly<{ device: number }>): Finding {
  const subject = `GPU ${device}`
  if (state === 'runs') return { subject, state: 'ok', detail: `${provider} runs a small model` }
  return {
    subject,
    state: 'warning',
    detail: `${reason}; its cameras go to the others`,
    fix: `remedy that, or leave ${device} out of inference.devices`,
  }
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
