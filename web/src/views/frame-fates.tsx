import type { JSX } from 'preact'
import type { Camera } from '../api/types.js'
import { count } from './format.js'

type Counts = Camera['stats']['frames']

/** Where the frames of a camera went, as one bar with its numbers: none is dropped silently. */
export function FrameFates({ counts }: Readonly<{ counts: Counts }>): JSX.Element {
  const shed = Object.values(counts.shed).reduce((sum, n) => sum + n, 0)
  const fates = [
    { name: 'analysed', frames: counts.inferred, tone: 'ok', why: 'Went through the detector' },
    { name: 'reused', frames: counts.reused, tone: 'ok', why: 'The scene had not changed' },
    { name: 'superseded', frames: counts.superseded, tone: 'info', why: 'A newer frame came first' },
    { name: 'suspect', frames: counts.suspect, tone: 'warn', why: 'The decoder reported damage' },
    { name: 'shed', frames: shed, tone: 'warn', why: shedReasons(counts) },
    { name: 'lost', frames: counts.lost, tone: 'bad', why: 'Were in an engine that died' },
  ]
  const ended = Math.max(
    1,
    fates.reduce((sum, { frames }) => sum + frames, 0),
  )
  let x = 0
  return (
    <section class="fates" aria-label="Frames by how they ended">
      <h3>{count(counts.received)} frames received</h3>
      <svg class="fates-bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        {fates.map(({ name, frames, tone }) => {
          const width = (frames / ended) * 100
          const rect = <rect key={name} class={`fill-${tone}`} x={x} y="0" width={width} height="6" />
          x += width
          return rect
        })}
      </svg>
      <ul>
        {fates
          .filter(({ frames, name }) => frames > 0 || name === 'analysed')
          .map(({ name, frames, tone, why }) => (
            <li key={name} title={why}>
              <span class={`dot ${tone}`} aria-hidden="true" />
              {count(frames)} {name}
            </li>
          ))}
      </ul>
    </section>
  )
}

function shedReasons({ shed }: Counts): string {
  const reasons = Object.entries(shed).filter(([, frames]) => frames > 0)
  return reasons.map(([cause, frames]) => `${cause.replaceAll('_', ' ')}: ${count(frames)}`).join(', ')
}
