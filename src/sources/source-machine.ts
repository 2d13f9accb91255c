import type { CameraState } from '../frames/camera-state.js'
import { backoffMs } from '../lifecycle/backoff.js'

/** A source that has run this long counts as healthy: the next failure starts with the shortest wait again. */
export const stableAfterMs = 60_000
const limits = { baseMs: 500, capMs: 30_000 }

/** Where a supervised source stands. `failures` is since the last healthy stretch. */
export type Machine = Readonly<{
  state: CameraState
  reason: string
  attempts: number
  failures: number
  /** When the present live stretch began. */
  liveSinceMs: number | undefined
  /** Wait before the next attempt, in `backoff`. */
  retryInMs?: number
}>

export type MachineEvent =
  | Readonly<{ type: 'attempt' }>
  | Readonly<{ type: 'frame' }>
  | Readonly<{ type: 'silent'; silentMs: number }>
  | Readonly<{ type: 'ended'; reason: string; restartAtOnce: boolean }>
  | Readonly<{ type: 'gaveUp'; reason: string }>

export const idleMachine: Machine = {
  state: 'connecting',
  reason: 'starting',
  attempts: 0,
  failures: 0,
  liveSinceMs: undefined,
}

/** The next standing of a source; decides, and leaves timers and processes to its caller. */
export function advance(machine: Machine, event: MachineEvent, nowMs: number, random: () => number): Machine {
  const { attempts, failures, liveSinceMs } = machine
  switch (event.type) {
    case 'attempt':
      return {
        state: 'connecting',
        reason: machine.reason,
        attempts: attempts + 1,
        failures,
        liveSinceMs: undefined,
      }
    case 'frame':
      return { state: 'live', reason: '', attempts, failures, liveSinceMs: liveSinceMs ?? nowMs }
    case 'silent': {
      const reason = `no frame for ${Math.round(event.silentMs)} ms`
      return { state: 'stalled', reason, attempts, failures, liveSinceMs }
    }
    case 'ended': {
      if (event.restartAtOnce)
        return { ...machine, state: 'connecting', reason: event.reason, liveSinceMs: undefined }
      const stable = liveSinceMs !== undefined && nowMs - liveSinceMs >= stableAfterMs
      const before = stable ? 0 : failures
      return {
        state: 'backoff',
        reason: event.reason,
        attempts,
        failures: before + 1,
        liveSinceMs: undefined,
        retryInMs: Math.round(backoffMs(before, limits, random)),
      }
    }
    case 'gaveUp':
      return { state: 'failed', reason: event.reason, attempts, failures, liveSinceMs: undefined }
    default:
      return event satisfies never
  }
}
