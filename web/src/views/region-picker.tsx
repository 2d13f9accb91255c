import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import type { FormState } from './fields.js'

type Region = Readonly<{ x: number; y: number; width: number; height: number }>
type Place = Readonly<{ x: number; y: number }>
type Grip = 'move' | 'nw' | 'ne' | 'sw' | 'se' | 'draw'

type Drag = Readonly<{
  pointerId: number
  grip: Grip
  from: Region
  /** Shares of the picture. */ at: Place
}> & {
  hasMoved: boolean
}

const whole: Region = { x: 0, y: 0, width: 1, height: 1 }
const least = 0.02
/** What moves less was a click: a hand is never quite still. */
const leastDragPx = 5
const corners = ['nw', 'ne', 'sw', 'se'] as const
const cornerNames = { nw: 'upper left', ne: 'upper right', sw: 'lower left', se: 'lower right' } as const

const rounded = (value: number): number => Math.round(value * 1_000) / 1_000
const within = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value))

/** The region as the form has it; all of the picture where it is empty or no number. */
function regionOf({ values }: FormState): Region {
  const side = (name: keyof Region): number => {
    const text = String(values[`region.${name}`] ?? '').replace(',', '.')
    return text.trim() === '' || !Number.isFinite(Number(text)) ? whole[name] : within(Number(text), 0, 1)
  }
  return { x: side('x'), y: side('y'), width: side('width'), height: side('height') }
}

/** One step of a grip. Shares of the picture. */
export function moved(region: Region, grip: Exclude<Grip, 'draw'>, dx: number, dy: number): Region {
  const { x, y, width, height } = region
  if (grip === 'move') return { ...region, x: within(x + dx, 0, 1 - width), y: within(y + dy, 0, 1 - height) }
  let [left, top, right, bottom] = [x, y, x + width, y + height]
  if (grip === 'nw' || grip === 'sw') left = within(left + dx, 0, right - least)
  else right = within(right + dx, left + least, 1)
  if (grip === 'nw' || grip === 'ne') top = within(top + dy, 0, bottom - least)
  else bottom = within(bottom + dy, top + least, 1)
  return { x: left, y: top, width: right - left, height: bottom - top }
}

/** All between two places of the picture, whichever is first. Shares of it; places outside count as its edge. */
export function between(one: Place, other: Place): Region {
  const span = (a: number, b: number): readonly [number, number] => {
    const low = within(Math.min(a, b), 0, 1 - least)
    return [low, within(Math.max(a, b), low + least, 1) - low]
  }
  const [[x, width], [y, height]] = [span(one.x, other.x), span(one.y, other.y)]
  return { x, y, width, height }
}

type PickerProps = Readonly<{ state: FormState; picture: string | undefined }>

/** The part of the picture that is analysed, drawn into it: by mouse, finger or arrow keys. Numbers stand beside it. */
export function RegionPicker({ state, picture }: PickerProps): JSX.Element {
  const area = useRef<HTMLDivElement>(null)
  const drag = useRef<Drag | undefined>(undefined)
  const region = regionOf(state)
  const set = (next: Region): void => {
    for (const side of ['x', 'y', 'width', 'height'] as const) {
      const low = side === 'width' ? 1 - rounded(next.x) : side === 'height' ? 1 - rounded(next.y) : 1
      state.set(`region.${side}`, String(rounded(Math.min(next[side], low))))
    }
  }
  const begin = (grip: Grip) => (event: PointerEvent) => {
    event.preventDefault()
    event.stopPropagation()
    const box = area.current?.getBoundingClientRect()
    // One finger at a time, and the button that draws.
    if (box === undefined || drag.current !== undefined || event.button !== 0) return
    area.current?.setPointerCapture(event.pointerId)
    // All of the picture cannot be moved: there is nothing to grip yet, and a part is drawn.
    const isWhole = region.width === 1 && region.height === 1
    drag.current = {
      pointerId: event.pointerId,
      grip: grip === 'move' && isWhole ? 'draw' : grip,
      from: region,
      at: { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height },
      hasMoved: false,
    }
  }
  const move = (event: PointerEvent): void => {
    const [box, dragged] = [area.current?.getBoundingClientRect(), drag.current]
    if (dragged?.pointerId !== event.pointerId || box === undefined) return
    const to = { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height }
    const [dx, dy] = [to.x - dragged.at.x, to.y - dragged.at.y]
    dragged.hasMoved ||= Math.hypot(dx * box.width, dy * box.height) >= leastDragPx
    if (!dragged.hasMoved) return
    set(dragged.grip === 'draw' ? between(dragged.at, to) : moved(dragged.from, dragged.grip, dx, dy))
  }
  const end = (event: PointerEvent): void => {
    if (drag.current?.pointerId === event.pointerId) drag.current = undefined
  }
  const keys = (grip: Exclude<Grip, 'draw'>) => (event: KeyboardEvent) => {
    const step = event.shiftKey ? 0.05 : 0.01
    const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[
      event.key
    ]
    if (by === undefined) return
    event.preventDefault()
    event.stopPropagation()
    set(moved(region, grip, by[0] ?? 0, by[1] ?? 0))
  }
  const percent = (share: number): string => `${share * 100}%`
  const shape = {
    left: percent(region.x),
    top: percent(region.y),
    width: percent(region.width),
    height: percent(region.height),
  }
  return (
    <div class="region-picker">
      <div
        ref={area}
        class="region-area"
        onPointerDown={begin('draw')}
        onPointerMove={move}
        onPointerUp={end}
        onPointerCancel={end}
      >
        {picture === undefined ? (
          <span class="muted">No picture yet: “Try it” fetches one.</span>
        ) : (
          <img src={picture} alt="" draggable={false} />
        )}
        <div
          class="region-box"
          style={shape}
          role="group"
          tabIndex={0}
          aria-label="Region of interest: arrow keys move it, with Shift faster"
          onPointerDown={begin('move')}
          onKeyDown={keys('move')}
        >
          {corners.map((corner) => (
            <button
              key={corner}
              type="button"
              class={`region-grip ${corner}`}
              aria-label={`Corner ${cornerNames[corner]}: arrow keys move it`}
              onPointerDown={begin(corner)}
              onKeyDown={keys(corner)}
            />
          ))}
        </div>
      </div>
      <button
        type="button"
        class="button"
        onClick={() =>
          (['x', 'y', 'width', 'height'] as const).forEach((side) => state.set(`region.${side}`, ''))
        }
      >
        Whole picture
      </button>
    </div>
  )
}
