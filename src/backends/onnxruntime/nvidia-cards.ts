import { readdirSync, readFileSync } from 'node:fs'
import { nowMs } from '../../lifecycle/clock.js'
import type { GpuReading } from '../../metrics/gpu-reading.js'
import { askGpus, askGpusSync } from './ask-gpus.js'
import type { GpuMemory } from './provider-reason.js'

/** While runs fail one after another, it is not asked for each. */
const askEveryMs = 10_000

let asked: Readonly<{ atMs: number; cards: readonly GpuReading[] }> | undefined

/** GPUs that CUDA shows to this process, as far as the driver's files tell. */
export function gpuCount(): number | undefined {
  const visible = visibleCards()
  if (visible !== undefined) return visible.length
  try {
    return readdirSync('/proc/driver/nvidia/gpus').length
  } catch {
    return undefined
  }
}

/** Version of the driver that runs, as its kernel module tells it; `undefined` where there is none. */
export function driverVersion(file = '/proc/driver/nvidia/version'): string | undefined {
  try {
    return /^NVRM version:.*?\s(\d{3,}(?:\.\d+)+)\s/m.exec(readFileSync(file, 'utf8'))?.[1]
  } catch {
    return undefined
  }
}

/** Memory of a GPU, as `nvidia-smi` tells it, at most ten seconds old. @param deviceId - as {@link cardOfDevice} takes it. */
export function gpuMemory(deviceId: number): GpuMemory | undefined {
  const now = nowMs()
  if (asked === undefined || now - asked.atMs > askEveryMs) asked = { atMs: now, cards: askGpusSync() }
  return memoryOf(cardOfDevice(deviceId, asked.cards))
}

/** The same as it is now, for whoever can wait for it. */
export async function gpuMemoryNow(deviceId: number): Promise<GpuMemory | undefined> {
  return memoryOf(cardOfDevice(deviceId, await askGpus()))
}

/** The uuid of a GPU; undefined where nothing tells. @param deviceId - see {@link gpuMemory}. */
export async function gpuIdentity(deviceId: number): Promise<string | undefined> {
  return cardOfDevice(deviceId, await askGpus())?.uuid
}

function memoryOf(card: GpuReading | undefined): GpuMemory | undefined {
  const { memoryUsedBytes: usedBytes, memoryTotalBytes: totalBytes } = card ?? {}
  return typeof usedBytes === 'number' && typeof totalBytes === 'number'
    ? { usedBytes, totalBytes }
    : undefined
}

/**
 * The card among those that `nvidia-smi` lists.
 *
 * @param deviceId - as CUDA counts in this process. Where cards differ that may be another order than that of `nvidia-smi`: nothing is told
 * then.
 */
export function cardOfDevice<Listed extends Pick<GpuReading, 'index' | 'uuid' | 'name'>>(
  deviceId: number,
  cards: readonly Listed[],
): Listed | undefined {
  const id = visibleCards()?.[deviceId] ?? String(deviceId)
  const byUuid = cards.find(({ uuid }) => id.startsWith('GPU-') && uuid?.startsWith(id))
  const isSameOrder =
    process.env.CUDA_DEVICE_ORDER === 'PCI_BUS_ID' || new Set(cards.map(({ name }) => name)).size === 1
  return byUuid ?? (isSameOrder ? cards.find(({ index }) => String(index) === id) : undefined)
}

function visibleCards(): readonly string[] | undefined {
  return process.env.CUDA_VISIBLE_DEVICES?.split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '')
}
