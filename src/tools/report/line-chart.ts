import { escapeHtml, numberText } from './html.js'

/** A line through points, in the order given. `title` of a point is shown when the pointer rests on it. */
export type ChartSeries = Readonly<{
  name: string
  points: readonly Readonly<{ x: number; y: number; title?: string }>[]
  /** Points alone, without a line between them. */
  dots?: boolean
}>

export type ChartOptions = Readonly<{
  xLabel: string
  yLabel: string
  /** Ends of the axes where they shall not follow from the points. */
  xMin?: number
  xMax?: number
  yMin?: number
  yMax?: number
  /** A line across, such as a limit. */
  yMark?: Readonly<{ y: number; name: string }>
}>

const size = { width: 720, height: 360, left: 64, right: 16, top: 16, bottom: 44 } as const
const colours = 6

/** A chart as inline SVG in a figure, with a legend where there are several lines. Axes begin at 0 unless told otherwise. */
export function lineChart(series: readonly ChartSeries[], options: ChartOptions): string {
  const points = series
    .flatMap((one) => one.points)
    .filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y))
  if (points.length === 0) return '<p>There is nothing to draw.</p>'
  const x = axis(options.xMin ?? 0, options.xMax ?? Math.max(...points.map((point) => point.x)))
  const y = axis(
    options.yMin ?? 0,
    options.yMax ?? Math.max(...points.map((point) => point.y), options.yMark?.y ?? 0),
  )
  const place: Place = {
    x: (value) => size.left + ((value - x.min) / (x.max - x.min)) * (size.width - size.left - size.right),
    y: (value) =>
      size.height -
      size.bottom -
      ((value - y.min) / (y.max - y.min)) * (size.height - size.top - size.bottom),
  }
  const parts = [
    ...y.ticks.map((tick) => yTick(tick, place)),
    ...x.ticks.map((tick) => xTick(tick, place)),
    axisNames(options),
    options.yMark === undefined ? '' : mark(options.yMark, place),
    ...series.map((one, index) => seriesSvg(one, index, place)),
  ]
  const label = escapeHtml(`${options.yLabel} against ${options.xLabel}`)
  const svg = `<svg viewBox="0 0 ${size.width} ${size.height}" role="img" aria-label="${label}">${parts.join('\n')}</svg>`
  return `<figure>${svg}${series.length > 1 ? legend(series) : ''}</figure>`
}

type Place = Readonly<{ x(value: number): number; y(value: number): number }>
type Axis = Readonly<{ min: number; max: number; ticks: readonly number[] }>

/** Round numbers: steps of 1, 2 or 5 times a power of ten, five to ten of them. */
function axis(from: number, to: number): Axis {
  const span = to > from ? to - from : Math.abs(from) || 1
  const rough = span / 6
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power
  const min = Math.floor(from / step) * step
  const count = Math.max(1, Math.ceil((from + span - min) / step - 1e-9))
  const ticks = Array.from({ length: count + 1 }, (_, index) => Number((min + index * step).toPrecision(12)))
  return { min, max: ticks.at(-1)!, ticks }
}

function yTick(tick: number, place: Place): string {
  const at = place.y(tick).toFixed(1)
  return (
    `<line class="grid" x1="${size.left}" x2="${size.width - size.right}" y1="${at}" y2="${at}"/>` +
    `<text x="${size.left - 8}" y="${at}" dy="4" text-anchor="end">${tickText(tick)}</text>`
  )
}

function xTick(tick: number, place: Place): string {
  const at = place.x(tick).toFixed(1)
  const bottom = size.height - size.bottom
  return (
    `<line class="grid" x1="${at}" x2="${at}" y1="${size.top}" y2="${bottom}"/>` +
    `<text x="${at}" y="${bottom + 18}" text-anchor="middle">${tickText(tick)}</text>`
  )
}

function tickText(tick: number): string {
  return tick === 0 ? '0' : numberText(tick)
}

function axisNames({ xLabel, yLabel }: ChartOptions): string {
  const middle = (size.top + size.height - size.bottom) / 2
  return (
    `<text x="${(size.left + size.width - size.right) / 2}" y="${size.height - 6}" text-anchor="middle">${escapeHtml(xLabel)}</text>` +
    `<text x="14" y="${middle}" text-anchor="middle" transform="rotate(-90 14 ${middle})">${escapeHtml(yLabel)}</text>`
  )
}

function mark({ y, name }: NonNullable<ChartOptions['yMark']>, place: Place): string {
  const at = place.y(y).toFixed(1)
  return (
    `<line x1="${size.left}" x2="${size.width - size.right}" y1="${at}" y2="${at}" stroke="var(--c5)" stroke-dasharray="6 4"/>` +
    `<text x="${size.width - size.right}" y="${at}" dy="-5" text-anchor="end">${escapeHtml(name)}</text>`
  )
}

function seriesSvg({ name, points, dots }: ChartSeries, index: number, place: Place): string {
  const colour = colourOf(index)
  const drawn = points.filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y))
  const at = drawn.map(({ x, y }) => `${place.x(x).toFixed(1)},${place.y(y).toFixed(1)}`)
  const line =
    dots === true || at.length < 2
      ? ''
      : `<polyline points="${at.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`
  const marks = drawn.map(({ x, y, title }) => {
    const words = escapeHtml(title ?? `${name}: ${numberText(x)}, ${numberText(y)}`)
    return `<circle cx="${place.x(x).toFixed(1)}" cy="${place.y(y).toFixed(1)}" r="3.5" fill="${colour}"><title>${words}</title></circle>`
  })
  return `<g>${line}${marks.join('')}</g>`
}

function legend(series: readonly ChartSeries[]): string {
  const items = series.map(
    ({ name }, index) => `<span style="color:${colourOf(index)}">●</span> ${escapeHtml(name)}`,
  )
  return `<figcaption>${items.join('&emsp;')}</figcaption>`
}

function colourOf(index: number): string {
  return `var(--c${index % colours})`
}
