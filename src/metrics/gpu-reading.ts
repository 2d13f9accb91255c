import type { GpuFigures } from './gpu-metrics.js'

/** What `nvidia-smi` says of cards, a line each: whoever runs it asks with the same words and reads with the same eyes. */

/** Known to every driver: a field that one does not know fails the whole question. The name may hold commas, so it is the last. */
const fields = [
  'index',
  'uuid',
  'utilization.gpu',
  'memory.total',
  'memory.used',
  'power.draw',
  'power.limit',
  'name',
]
const bytes = (mib: number) => Math.round(mib * 1024 ** 2)

/** Asks it for a line of each card, without heads and units. @param before - other fields, whose cells come first. */
export function gpuQueryWith(before: readonly string[]): readonly string[] {
  return [`--query-gpu=${[...before, ...fields].join(',')}`, '--format=csv,noheader,nounits']
}

export const gpuQuery: readonly string[] = gpuQueryWith([])

/** What a line tells of a card. A card that was lost may not even tell its uuid. */
export type GpuReading = Omit<GpuFigures, 'uuid' | 'energyJoules'> & Readonly<{ uuid: string | undefined }>

/** A line that answers {@link gpuQuery}; undefined for one that tells of no card. */
export function gpuReading(line: string): GpuReading | undefined {
  const [index = '', uuid = '', ...cells] = line.split(',').map((cell) => cell.trim())
  if (!/^\d{1,3}$/.test(index) || cells.length < fields.length - 2) return undefined
  const [utilization, memoryTotal, memoryUsed, power, powerLimit, ...name] = cells
  return {
    index: Number(index),
    uuid: /^[A-Z]+-[\dA-Fa-f-]{8,64}$/.test(uuid) ? uuid : undefined,
    name: name.join(', '),
    utilization: figure(utilization, (percent) => percent / 100),
    memoryUsedBytes: figure(memoryUsed, bytes),
    memoryTotalBytes: figure(memoryTotal, bytes),
    powerWatts: figure(power),
    powerLimitWatts: figure(powerLimit),
    reason: faultIn([uuid, ...cells.slice(0, fields.length - 3)]),
  }
}

/** The cards of all lines. */
export function gpuReadings(text: string): readonly GpuReading[] {
  return text.split('\n').flatMap((line) => gpuReading(line) ?? [])
}

/** In its place stands `[N/A]` where the card does not have it, `[Not Supported]` with old drivers, and more where it failed. */
function figure(cell = '', inUnits: (value: number) => number = (value) => value): number | null {
  return /^\d+(\.\d+)?$/.test(cell) ? inUnits(Number(cell)) : null
}

/**
 * `[GPU is lost]`, `[GPU requires reset]`: the card does not do its work. `[Unknown Error]` and `ERR!` stand at single figures of cards that
 * are well, so that they count only where there is no other figure.
 */
function faultIn(cells: readonly string[]): string {
  const isMute = cells.every((cell) => figure(cell) === null)
  const fault = cells.find((cell) => /lost|reset/i.test(cell) || (isMute && /err/i.test(cell))) ?? ''
  return fault.replace(/^\[(.*)\]$/, '$1')
}
