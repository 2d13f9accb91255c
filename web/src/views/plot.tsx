import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import type { Point } from '../state/series.js'
import { serviceClock } from '../state/service-clock.js'
import { useStore } from '../state/store.js'
import { theme } from '../state/theme.js'

export type PlotLine = Readonly<{
  name: string
  /** Name of a colour of the style sheet. */
  color: string
  value: (point: Point) => number | null
  filled?: boolean
}>

type PlotProps = Readonly<{
  points: readonly Point[]
  lines: readonly PlotLine[]
  label: string
  unit: string
  /** The scale goes up to this at least, so that a quiet line lies low. */
  leastTop: number
}>

const heightPx = 104
const shownSeconds = 300

/** Lines over the last minutes. The canvas is for eyes; the newest figures stand beside it as text. */
export function Plot({ points, lines, label, unit, leastTop }: PlotProps): JSX.Element {
  const holder = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | null>(null)
  const colors = useStore(theme)
  useEffect(() => {
    const element = holder.current
    if (element === null) return
    const made = new UPlot(options(lines, unit, leastTop, element), [[]], element)
    plot.current = made
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height: heightPx })
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [lines, unit, leastTop, colors])
  useEffect(() => {
    const columns = lines.map((line) => points.map(line.value))
    plot.current?.setData([points.map(({ atS }) => atS), ...columns])
  }, [points, lines, colors])
  return <div ref={holder} class="plot" role="img" aria-label={label} />
}

function options(
  lines: readonly PlotLine[],
  unit: string,
  leastTop: number,
  element: HTMLElement,
): UPlot.Options {
  const color = (name: string): string => resolvedColor(element, name)
  const axis = {
    stroke: color('--muted'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  }
  return {
    width: Math.max(1, element.clientWidth),
    height: heightPx,
    legend: { show: false },
    cursor: { show: false },
    padding: [6, 8, 0, 0],
    scales: {
      x: { range: () => [nowSeconds() - shownSeconds, nowSeconds()] },
      y: { range: (_plot, _min, max) => [0, niceTop(max ?? 0, leastTop)] },
    },
    axes: [
      { ...axis, size: 20, space: 60, values: (_plot, splits) => splits.map(minutesAgo()) },
      {
        ...axis,
        size: 46,
        space: 26,
        values: (_plot, splits) => splits.map((split) => axisText(split, unit)),
      },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.name,
        stroke: color(line.color),
        width: 1.75,
        points: { show: false },
        ...(line.filled === true ? { fill: translucent(color(line.color)) } : {}),
      })),
    ],
  }
}

function axisText(value: number, unit: string): string {
  return unit === 'ms' && value >= 1_000 ? `${value / 1_000} s` : `${value} ${unit}`
}

function nowSeconds(): number {
  return serviceClock.now() / 1000
}

function minutesAgo(): (split: number) => string {
  const newest = nowSeconds()
  return (split) => {
    const seconds = Math.round(newest - split)
    return seconds < 30 ? 'now' : `−${Math.round(seconds / 60)} min`
  }
}

/** A round number a little above the highest value, so that the scale stays put between updates. */
export function niceTop(highest: number, least: number): number {
  if (highest <= least) return least
  const power = 10 ** Math.floor(Math.log10(highest))
  const step = [1, 1.5, 2, 3, 4, 5, 7.5, 10].find((factor) => factor * power >= highest * 1.05)
  return (step ?? 15) * power
}

/** The value a colour of the style sheet has now: the canvas knows no variables. */
function resolvedColor(element: HTMLElement, name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function translucent(rgb: string): string {
  return rgb.replace(/^rgb\((.+)\)$/, 'rgba($1, 0.14)')
}
