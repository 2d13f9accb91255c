import type { CameraStatus } from '../vision/camera-state.js'
import { backoffMs, type BackoffLimits } from '../lifecycle/backoff.js'
import { refusedLoginMs } from './refused-login.js'
import type { SessionEnd } from './session.js'

/**
 * Where a supervised source stands.
 *
 * - `idle`: not started
 * - `queued`: waits for its turn to start a decoder
 * - `connecting`, `live`: a session runs
 * - `ending`: a silent session is being stopped
 * - `waiting`: until the next attempt
 * - `over`: will not run again
 */
export type SourcePhase =
  | Readonly<{ name: 'idle' }>
  | Readonly<{ name: 'queued' }>
  | Readonly<{ name: 'connecting'; sinceMs: number }>
  | Readonly<{ name: 'live'; sinceMs: number }>
  | Readonly<{ name: 'ending'; reason: string; connectingMs: number }>
  | Readonly<{ name: 'waiting' }>
  | Readonly<{ name: 'over' }>

export type SourceState = Readonly<{
  phase: SourcePhase
  /** Failures in a row, without a stable time between. */
  failures: number
  /** Logins refused in a row, whatever failed in between. */
  refusals: number
  /** Sessions opened. */
  attempts: number
  /** Why the last attempt failed; empty once a picture has come. */
  failure: string
}>

export type SourceEvent =
  | Readonly<{ type: 'start' }>
  | Readonly<{ type: 'admitted' }>
  /** The stream is open; nothing of it has been decoded. */
  | Readonly<{ type: 'opened' }>
  | Readonly<{ type: 'picture' }>
  /** No picture has come for so long, and the first one is waited for on. `known`: what is known of the camera meanwhile. */
  | Readonly<{ type: 'waits'; forMs: number; known: string }>
  /** The watchdog saw no picture for its time. `known`: what goes on the end of the reason. */
  | Readonly<{ type: 'silent'; silentMs: number; known?: string }>
  | Readonly<{ type: 'ended'; end: SessionEnd }>
  | Readonly<{ type: 'retry' }>

export type SourceEffect =
  | Readonly<{ type: 'queue' }>
  | Readonly<{ type: 'open' }>
  | Readonly<{ type: 'leaveGate' }>
  | Readonly<{ type: 'stopSession' }>
  | Readonly<{ type: 'retryIn'; forMs: number }>
  | Readonly<{ type: 'status'; status: Pick<CameraStatus, 'state' | 'reason' | 'retryInMs'> }>

export type SourcePolicy = Readonly<{
  backoff: BackoffLimits
  /** A session that lived so long was stable: the next failure is a first one. */
  stableMs: number
  /** Material that ends is begun again. */
  loop: boolean
  random: () => number
}>

export type Step = Readonly<{ state: SourceState; effects: readonly SourceEffect[] }>

export const initialSourceState: SourceState = {
  phase: { name: 'idle' },
  failures: 0,
  refusals: 0,
  attempts: 0,
  failure: '',
}

/** A session that ended by itself sooner is not begun again at once, or a short file would spin. */
const minLoopMs = 1_000

/** A long wait for a first picture is told anew so often. */
const tellEveryMs = 30_000

/** Decides what a source does next. Events that no longer apply change nothing. */
export function stepSource(
  state: SourceState,
  event: SourceEvent,
  nowMs: number,
  policy: SourcePolicy,
): Step {
  const { phase } = state
  switch (event.type) {
    case 'start':
      return phase.name === 'idle' ? queue(state, 'waiting for its turn to connect') : same(state)
    case 'retry':
      return phase.name === 'waiting' ? queue(state, 'waiting for its turn to connect') : same(state)
    case 'admitted':
      return phase.name === 'queued' ? open(state, nowMs) : same(state)
    case 'opened':
      // The next camera need not wait for the key frame of this one.
      return phase.name === 'connecting' ? { state, effects: [{ type: 'leaveGate' }] } : same(state)
    case 'picture':
      return phase.name === 'connecting' ? goLive(state, nowMs) : same(state)
    case 'waits':
      return phase.name === 'connecting' ? waits(state, event.forMs, event.known) : same(state)
    case 'silent':
      return silent(state, event, nowMs, policy)
    case 'ended':
      return ended(state, event.end, nowMs, policy)
  }
}

function same(state: SourceState): Step {
  return { state, effects: [] }
}

function status(state: CameraStatus['state'], reason: string, retryInMs?: number): SourceEffect {
  return { type: 'status', status: { state, reason, ...(retryInMs === undefined ? {} : { retryInMs }) } }
}

function queue(state: SourceState, reason: string): Step {
  return {
    state: { ...state, phase: { name: 'queued' } },
    effects: [status('connecting', withFailure(reason, state)), { type: 'queue' }],
  }
}

function open(state: SourceState, nowMs: number): Step {
  return {
    state: { ...state, phase: { name: 'connecting', sinceMs: nowMs }, attempts: state.attempts + 1 },
    effects: [{ type: 'open' }, status('connecting', withFailure('waiting for the first picture', state))],
  }
}

/** Somebody who looks while a camera is tried again sees what was wrong with it. */
function withFailure(reason: string, { failure }: SourceState): string {
  return failure === '' ? reason : `${reason}; before: ${failure}`
}

function goLive(state: SourceState, nowMs: number): Step {
  return {
    state: { ...state, phase: { name: 'live', sinceMs: nowMs }, failure: '', refusals: 0 },
    effects: [{ type: 'leaveGate' }, status('live', '')],
  }
}

function waits(state: SourceState, forMs: number, known: string): Step {
  const toldS = Math.floor(forMs / tellEveryMs) * (tellEveryMs / 1e3)
  const since = toldS > 0 ? `, for ${toldS} s` : ''
  const reason = `waiting for the first picture${since}: ${known}`
  return { state, effects: [status('connecting', withFailure(reason, state))] }
}

function silent(
  state: SourceState,
  { silentMs, known = '' }: Extract<SourceEvent, { type: 'silent' }>,
  nowMs: number,
  policy: SourcePolicy,
): Step {
  const { phase } = state
  if (phase.name !== 'live' && phase.name !== 'connecting') return same(state)
  const reason = `no picture for ${(silentMs / 1e3).toFixed(1)} s${known}`
  const connectingMs = phase.name === 'connecting' ? nowMs - phase.sinceMs : 0
  return {
    state: { ...settled(state, nowMs, policy), phase: { name: 'ending', reason, connectingMs } },
    effects: [status('stalled', reason), { type: 'leaveGate' }, { type: 'stopSession' }],
  }
}

function ended(state: SourceState, end: SessionEnd, nowMs: number, policy: SourcePolicy): Step {
  const { phase } = state
  const liveMs = phase.name === 'live' ? nowMs - phase.sinceMs : 0
  const left: SourceEffect = { type: 'leaveGate' }
  const after = settled(state, nowMs, policy)
  if (phase.name === 'ending') return backOff(after, phase.reason, 'normal', phase.connectingMs, policy, [])
  if (phase.name !== 'live' && phase.name !== 'connecting') return same(state)
  const connectingMs = phase.name === 'connecting' ? nowMs - phase.sinceMs : 0
  switch (end.kind) {
    case 'again':
      return prepend(left, queue(after, end.reason))
    case 'finished':
      if (!policy.loop && phase.name === 'live')
        return over(after, 'disabled', 'the end was reached and loop is off')
      if (policy.loop && phase.name === 'live') return prepend(left, beginAgain(after, liveMs))
      return backOff(after, 'ended without a picture', 'normal', connectingMs, policy, [left])
    case 'failed':
      if (end.retry === 'never') return over(after, 'failed', end.reason)
      return backOff(after, end.reason, end.retry, connectingMs, policy, [left], end.retryAfterMs)
  }
}

/** What is shorter than {@link minLoopMs} is not played more often than once in that time. */
function beginAgain(state: SourceState, liveMs: number): Step {
  const fresh = { ...state, failures: 0 }
  if (liveMs >= minLoopMs) return queue(fresh, 'beginning again')
  const forMs = Math.ceil(minLoopMs - liveMs)
  return {
    state: { ...fresh, phase: { name: 'waiting' } },
    effects: [status('connecting', 'beginning again'), { type: 'retryIn', forMs }],
  }
}

/** The failure count starts anew after a stable time. */
function settled(state: SourceState, nowMs: number, policy: SourcePolicy): SourceState {
  const { phase } = state
  return phase.name === 'live' && nowMs - phase.sinceMs >= policy.stableMs ? { ...state, failures: 0 } : state
}

/**
 * Waits with full jitter. Time that a fruitless attempt has already spent counts, so that a camera which hangs instead of refusing
 * is nearly always being tried and comes back as soon as it thaws.
 */
function backOff(
  state: SourceState,
  reason: string,
  retry: 'normal' | 'slow' | 'login',
  spentMs: number,
  policy: SourcePolicy,
  first: readonly SourceEffect[],
  askedForMs = 0,
): Step {
  const leastMs = policy.backoff.baseMs / 10
  const failures = retry === 'slow' ? 30 : state.failures
  const isRefused = retry === 'login'
  const forMs = isRefused
    ? refusedLoginMs(state.refusals, policy.random)
    : Math.max(leastMs, askedForMs, backoffMs(failures, policy.backoff, policy.random) - spentMs)
  const refusals = state.refusals + (isRefused ? 1 : 0)
  return {
    state: {
      ...state,
      phase: { name: 'waiting' },
      failures: state.failures + 1,
      refusals,
      failure: reason,
    },
    effects: [...first, status('backoff', reason, Math.round(forMs)), { type: 'retryIn', forMs }],
  }
}

function over(state: SourceState, as: 'failed' | 'disabled', reason: string): Step {
  return {
    state: { ...state, phase: { name: 'over' } },
    effects: [{ type: 'leaveGate' }, status(as, reason)],
  }
}

function prepend(effect: SourceEffect, step: Step): Step {
  return { state: step.state, effects: [effect, ...step.effects] }
}
