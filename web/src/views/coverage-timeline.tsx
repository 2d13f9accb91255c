import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { serviceClock } from '../state/service-clock.js'
import {
  causeTexts,
  coverageOf,
  coverageRanges,
  percentWatched,
  shownSpans,
  type CoverageItem,
  type CoverageRangeName,
} from '../state/coverage.js'
import { duration, moment } from './format.js'

/** While it is open it is asked for again so often. */
const askEveryMs = 5_000
/** Rows of the list; a camera that flaps has more. */
const mostRows = 50

/** Time of one camera, watched and blind: as a line for the eye, and as a list for everybody. */
export function CoverageTimeline({ id }: Readonly<{ id: string }>): JSX.Element {
  const [range, setRange] = useState<CoverageRangeName>('hour')
  const { item, trouble } = useCoverage(id, range)
  return (
    <section class="coverage" aria-label="Coverage">
      <div class="coverage-head">
        <h3>Coverage</h3>
        <div role="group" aria-label="Time shown">
          {(Object.keys(coverageRanges) as CoverageRangeName[]).map((name) => (
            <button
              key={name}
              type="button"
              class="switch"
              aria-pressed={range === name}
              onClick={() => setRange(name)}
            >
              last {name}
            </button>
          ))}
        </div>
      </div>
      {trouble !== '' && <p role="status">{trouble}</p>}
      {item && <Line item={item} range={range} />}
    </section>
  )
}

function useCoverage(
  id: string,
  range: CoverageRangeName,
): Readonly<{ item: CoverageItem | undefined; trouble: string }> {
  const [item, setItem] = useState<CoverageItem | undefined>(undefined)
  const [trouble, setTrouble] = useState('')
  useEffect(() => {
    const gone = new AbortController()
    const ask = async (): Promise<void> => {
      try {
        const { items } = await coverageOf(id, range, serviceClock.now(), gone.signal)
        setItem(items[0])
        setTrouble(items[0] === undefined ? 'Nothing is known of that time.' : '')
      } catch (error) {
        if (!gone.signal.aborted) setTrouble(error instanceof Error ? error.message : String(error))
      }
    }
    void ask()
    const timer = setInterval(() => void ask(), askEveryMs)
    return () => {
      gone.abort()
      clearInterval(timer)
    }
  }, [id, range])
  return { item, trouble }
}

function Line({ item, range }: Readonly<{ item: CoverageItem; range: CoverageRangeName }>): JSX.Element {
  const toMs = Date.parse(item.to)
  const fromMs = toMs - coverageRanges[range]
  const spans = shownSpans(item.spans ?? [], fromMs, toMs)
  const blind = spans.filter(({ cause }) => cause !== null).reverse()
  const share = item.watchedSeconds / Math.max(0.001, item.watchedSeconds + item.blindSeconds)
  const causes = Object.entries(item.blindSecondsByCause).map(
    ([cause, seconds]) =>
      `${causeTexts[cause as keyof typeof causeTexts]} ${duration((seconds ?? 0) * 1_000)}`,
  )
  const summary = `watched ${percentWatched(share)}${causes.length === 0 ? '' : `; blind: ${causes.join(', ')}`}`
  return (
    <>
      <div class="coverage-line" role="img" aria-label={`Coverage of the last ${range}: ${summary}`}>
        {spans.map((span) => (
          <span
            key={span.fromMs}
            data-cause={span.cause ?? 'watched'}
            style={{ left: `${span.left}%`, width: `${span.width}%` }}
            title={`${span.cause === null ? 'watched' : causeTexts[span.cause]}, ${moment(span.fromMs, toMs)}, ${duration(span.toMs - span.fromMs)}`}
          />
        ))}
      </div>
      <p class="coverage-ends" aria-hidden="true">
        <span>{moment(fromMs, toMs)}</span>
        <span>now</span>
      </p>
      <p class="coverage-sum">{summary}</p>
      {blind.length > 0 && (
        <details>
          <summary>
            {blind.length} {blind.length === 1 ? 'time' : 'times'} blind
          </summary>
          <ul class="coverage-list">
            {blind.slice(0, mostRows).map((span) => (
              <li key={span.fromMs}>
                <span class="coverage-mark" data-cause={span.cause} aria-hidden="true" />
                {span.cause === null ? '' : causeTexts[span.cause]}, {moment(span.fromMs, toMs)}, for{' '}
                {duration(span.toMs - span.fromMs)}
              </li>
            ))}
          </ul>
          {blind.length > mostRows && <p>The last {mostRows} are shown.</p>}
        </details>
      )}
    </>
  )
}
