import type { ExecutionProvider } from '../../../src/config/inference.js'
import type { Figures } from '../bench.js'
import type { Place } from './plan.js'

/** Where a measurement takes place. */
export type Context = Readonly<{
  provider: ExecutionProvider
  deviceId: number
  /** Folder of `models.ts`. */
  repository: string
  /** With the package onnxruntime-gpu, for what the binding for Node does not take. */
  python: string
  /** A clip of 1920x1080, made where it is not there. */
  clip1080: string
  /** What settles in this time: decoders at the rate of their cameras. */
  settleMs: number
}>

/** From and to, of the clock of the machine: what the card did meanwhile belongs to the figures. */
export type Window = readonly [number, number]

export type Tell = (place: Place, unit: string, figures: Figures, windows?: readonly Window[]) => void

/** Cannot be measured here, and why. */
export class NotHere extends Error {}

export function isOnCard({ provider }: Context): boolean {
  return provider !== 'cpu'
}

/** Notes when something ran. */
export async function within<T>(windows: Window[], run: () => Promise<T>): Promise<T> {
  const from = Date.now()
  try {
    return await run()
  } finally {
    windows.push([from, Date.now()])
  }
}
