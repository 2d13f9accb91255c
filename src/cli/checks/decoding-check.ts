import type { PipelineConfig } from '../../config/pipeline.js'
import { gpuMemory } from '../../backends/onnxruntime/nvidia-cards.js'
import type { GpuMemory } from '../../backends/onnxruntime/provider-reason.js'
import { decodersThatFit } from '../../processes/control/decoder-budget.js'
import { firstDecoderBytes } from '../../processes/control/decoder-cost.js'
import { FfmpegFilters } from '../../sources/ffmpeg-filters.js'
import type { Finding } from '../findings.js'
import { devicesToTry } from './provider-check.js'

const mib = 1024 ** 2
const eachMiB = firstDecoderBytes / mib

/** Whether the GPUs hold the decoders of cameras that ask for it: the sum, before anything has been measured. */
export async function checkDecoding({
  cameras,
  decoding,
  inference,
}: Pick<PipelineConfig, 'cameras' | 'decoding' | 'inference'>): Promise<readonly Finding[]> {
  const asking = cameras.filter(
    ({ enabled, hwaccel }) => enabled && (hwaccel === 'cuda' || hwaccel === 'auto'),
  )
  if (asking.length === 0) return []
  const devices = await devicesToTry(inference)
  const cards = devices.map((device) => ({ device, memory: gpuMemory(device) }))
  if (cards.every(({ memory }) => memory === undefined))
    return asking.some(({ hwaccel }) => hwaccel === 'cuda') ? [noCard] : []
  const scales = await new FfmpegFilters().has('scale_cuda')
  const where = scales ? 'scaled there' : 'scaled in software, since this ffmpeg has no filter scale_cuda'
  // As many on each, where engines are alike.
  const each = Math.ceil(asking.length / devices.length)
  return cards.map(({ device, memory }) => cardFinding(device, memory, each, decoding.gpuMemoryShare, where))
}

const noCard: Finding = {
  subject: 'decoding',
  state: 'warning',
  detail:
    'cameras have hwaccel: cuda, and nvidia-smi tells of no GPU: they are decoded in software where none is',
  fix: 'install the driver of the card, or leave hwaccel at none',
}

function cardFinding(
  device: number,
  memory: GpuMemory | undefined,
  cameras: number,
  share: number,
  where: string,
): Finding {
  const subject = `decoding on GPU ${device}`
  if (memory === undefined)
    return { subject, state: 'warning', detail: 'its memory is not told: decoders on it are not bounded' }
  const { totalBytes, usedBytes } = memory
  const [totalMiB, usedMiB] = [totalBytes / mib, usedBytes / mib]
  const mayMiB = share * totalMiB
  const sum = `${cameras} x ${eachMiB} MiB = ${gib(cameras * eachMiB)} GiB of ${gib(mayMiB)} GiB (${share} of ${gib(totalMiB)}; ${gib(totalMiB - usedMiB)} are free now)`
  const fits = decodersThatFit({
    share,
    totalBytes,
    freeBytes: totalBytes - usedBytes,
    eachBytes: firstDecoderBytes,
  })
  if (fits >= cameras) return { subject, state: 'ok', detail: `${sum}, ${where}` }
  return {
    subject,
    state: 'warning',
    detail: `${sum}: ${cameras - fits} of ${cameras} cameras would be decoded in software`,
    fix: 'raise decoding.gpuMemoryShare if the models leave room for it, or set hwaccel: none for some; see docs/decoding.md',
  }
}

function gib(mib: number): string {
  return (mib / 1024).toFixed(1)
}
