const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})
const day = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric' })
const zone = new Intl.DateTimeFormat(undefined, { timeZoneName: 'shortOffset' })
const whole = new Intl.NumberFormat(undefined)

export function clockTime(atMs: number): string {
  return clock.format(atMs)
}

/** Time of day, with the date where it was another day. */
export function moment(atMs: number, nowMs: number): string {
  const date = day.format(atMs)
  return date === day.format(nowMs) ? clockTime(atMs) : `${date} ${clockTime(atMs)}`
}

/** The zone that times are shown in, and how far it was from UTC then: `Europe/Berlin, GMT+1`. */
export function timeZone(atMs: number): string {
  const { timeZone: name } = zone.resolvedOptions()
  const offset = zone.formatToParts(atMs).find(({ type }) => type === 'timeZoneName')?.value
  return offset === undefined || /^(UTC|GMT)$/.test(name) ? name : `${name}, ${offset}`
}

export function count(value: number): string {
  return whole.format(value)
}

/** One digit behind the point; of less than one a second two that count, since a camera may send one a minute. */
export function perSecond(fps: number): string {
  if (fps > 0 && fps < 0.95) return String(Number(fps.toPrecision(2)))
  return fps >= 100 ? fps.toFixed(0) : fps.toFixed(1)
}

export function milliseconds(ms: number): string {
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(2)} s`
  return ms >= 10 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`
}

export function share(part: number): string {
  const percent = part * 100
  return `${percent >= 10 || percent === 0 ? percent.toFixed(0) : percent.toFixed(1)} %`
}

/** `318 of 700 W`; `318 W` where there is no most. */
export function ofMost(value: number, most: number | null, digits: number, unit: string): string {
  const limit = most === null ? '' : ` of ${most.toFixed(digits)}`
  return `${value.toFixed(digits)}${limit} ${unit}`
}

/** `3 s`, `4 min`, `2 h`, `5 d`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}
