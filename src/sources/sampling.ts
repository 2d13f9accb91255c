import { prints } from './decoder-log.js'

/** Seconds of stream time after the first picture, when the bursts of connecting are over. */
const firstAlignment = 2
/** Seconds between looks at the phase: clocks of cameras drift by milliseconds a minute. */
const alignEvery = 30

/** Where in the sampling period a camera's pictures shall fall, as a fraction of it, `[0, 1)`. */
export type SamplingPhase = number

/**
 * Expression of ffmpeg's `select` filter that passes `fps` frames per second of stream time.
 *
 * A clock in variable 0 holds when the next frame is due. A frame may come a quarter of a period early, because cameras' timestamps
 * jitter, but the clock goes on by whole periods, so that the average is never above `fps`. When time jumps back the clock follows
 * it; when time jumps ahead or is missing the frame passes. So no frame is lost to its timestamp.
 *
 * With a `phase`, the clock is set once in a while so that the pictures fall on that part of the period by the machine's time. It is only
 * ever set to later, so the average still is never above `fps`. Without it, cameras whose pictures happen to come at the same moment
 * would do so at every sample, and wait for each other.
 *
 * The time of each key frame is printed, sampled or not: damage ends there. That of each frame that passes is printed too.
 *
 * @param wallSeconds - expression for the machine's time.
 * @param isKey - expression that tells key frames.
 * @param told - what is printed of a frame that passes; `0` where another filter does it.
 */
export function selectExpression(
  fps: number,
  phase?: SamplingPhase,
  wallSeconds = 'time(0)',
  isKey = 'key',
  told: string = prints.picture,
): string {
  const period = 1 / fps
  const early = (period / 4).toFixed(6)
  const jump = (period * 2).toFixed(6)
  const p = period.toFixed(6)
  return [
    `if(${isKey},${prints.key},0)`,
    `st(1,isnan(t)+isnan(prev_selected_t)+lt(t,ld(0)-${jump})+gte(t,ld(0)-${early}))`,
    `if(ld(1)*not(isnan(t)),st(0,${p}+if(gt(abs(t-ld(0)),${jump}),t,max(ld(0),t-${p}))),0)`,
    ...(phase === undefined ? [] : alignment(period, phase, wallSeconds)),
    `if(ld(1),${told},0)`,
    'ld(1)',
  ].join(';')
}

/**
 * Variable 2 holds the stream time of the next look, 3 how long after its phase this picture came. What is nearer to the phase than any
 * other picture of the stream can be is left alone: a camera of few pictures per period has little to choose from.
 */
function alignment(period: number, phase: SamplingPhase, wallSeconds: string): string[] {
  const p = period.toFixed(6)
  const step = `(t-prev_t)`
  const near = `max(${(period / 8).toFixed(6)},${step}*0.75)`
  const due = `t+2*${p}-ld(3)+${(period / 4).toFixed(6)}-${step}/2`
  const look = [
    `st(3,mod(${wallSeconds}-${(phase * period).toFixed(6)},${p}))`,
    `if(between(ld(3),${near},${p}-${near}),st(0,${due}),0)`,
    `st(2,t+${alignEvery})`,
  ].join(';')
  return [
    `if(isnan(prev_selected_t),st(2,t+${firstAlignment}),0)`,
    `if(ld(1)*not(isnan(prev_selected_t))*(gte(t,ld(2))+lt(t,ld(2)-${2 * alignEvery})),${look},0)`,
  ]
}
