/**
 * Expression of ffmpeg's `select` filter that passes `fps` frames per second of stream time.
 *
 * A clock in variable 0 holds when the next frame is due. A frame may come a quarter of a period early, because cameras' timestamps
 * jitter, but the clock goes on by whole periods, so that the average is never above `fps`. When time jumps back the clock follows
 * it; when time jumps ahead or is missing the frame passes. So no frame is lost to its timestamp.
 *
 * Each key frame is printed, sampled or not: damage ends there.
 */
export function selectExpression(fps: number): string {
  const period = 1 / fps
  const early = (period / 4).toFixed(6)
  const jump = (period * 2).toFixed(6)
  const p = period.toFixed(6)
  return [
    'if(key,print(n),0)',
    `st(1,isnan(t)+isnan(prev_selected_t)+lt(t,ld(0)-${jump})+gte(t,ld(0)-${early}))`,
    `if(ld(1)*not(isnan(t)),st(0,${p}+if(gt(abs(t-ld(0)),${jump}),t,max(ld(0),t-${p}))),0)`,
    'ld(1)',
  ].join(';')
}
