import type { JSX } from 'preact'
import { useDashboard } from '../state/context.js'
import { useStore } from '../state/store.js'
import type { Point } from '../state/series.js'
import { milliseconds, perSecond } from './format.js'
import { Plot, type PlotLine } from './plot.js'

const latency: readonly PlotLine[] = [
  { name: 'p99', color: '--warn', value: (point) => point.p99Ms },
  { name: 'p50', color: '--info', value: (point) => point.p50Ms, filled: true },
]
const throughput: readonly PlotLine[] = [
  { name: 'fps', color: '--ok', value: (point) => point.fps, filled: true },
]

/** Latency and throughput over the last five minutes, by the time at which the frames were captured. */
export function TrendsPanel(): JSX.Element {
  const { results } = useDashboard()
  const points = useStore(results.points)
  const last = points.at(-1)
  return (
    <section class="panel trends" aria-labelledby="trends-title">
      <header class="panel-head">
        <h2 id="trends-title">Last five minutes</h2>
        <span class="muted" title="What came late, after a break for instance, stands where it was captured">
          by time of capture
        </span>
      </header>
      <div class="trend">
        <TrendHead
          name="Latency"
          title="From the last byte of the frame to the result being published"
          figures={latencyFigures(last)}
        />
        <Plot
          points={points}
          lines={latency}
          label="Latency p50 and p99 in milliseconds"
          unit="ms"
          leastTop={20}
        />
      </div>
      <div class="trend">
        <TrendHead
          name="Throughput"
          title="Frames that were captured and analysed"
          figures={[['frames/s', typeof last?.fps === 'number' ? perSecond(last.fps) : '–', 'ok']]}
        />
        <Plot
          points={points}
          lines={throughput}
          label="Frames analysed per second, by time of capture"
          unit="/s"
          leastTop={10}
        />
      </div>
    </section>
  )
}

type FigureRow = readonly [name: string, value: string, tone: string]

function latencyFigures(last: Point | undefined): FigureRow[] {
  const text = (ms: number | null | undefined): string =>
    ms === null || ms === undefined ? '–' : milliseconds(ms)
  return [
    ['p50', text(last?.p50Ms), 'info'],
    ['p99', text(last?.p99Ms), 'warn'],
  ]
}

type HeadProps = Readonly<{ name: string; title: string; figures: readonly FigureRow[] }>

function TrendHead({ name, title, figures }: HeadProps): JSX.Element {
  return (
    <div class="trend-head" title={title}>
      <h3>{name}</h3>
      <dl>
        {figures.map(([figure, value, tone]) => (
          <div key={figure}>
            <dt>
              <span class={`dot ${tone}`} aria-hidden="true" />
              {figure}
            </dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  )
}
