import { useState } from 'preact/hooks'

/** Where Tab stops in a list of rows of buttons: by one of them, so that a long list is no trap. */
export type RovingStop = Readonly<{ row: string; column: number }>

export type Roving = Readonly<{
  /** -1 for every button but one. */
  tabIndex(row: string, column: number): 0 | -1
  onFocusIn(event: FocusEvent): void
  onKeyDown(event: KeyboardEvent): void
}>

const steps: Readonly<Record<string, readonly [rows: number, columns: number]>> = {
  ArrowDown: [1, 0],
  ArrowUp: [-1, 0],
  ArrowRight: [0, 1],
  ArrowLeft: [0, -1],
}

/**
 * One stop of Tab for a list: arrow keys, Home and End go on from it. Rows are elements with `data-row`, their buttons are found in them.
 *
 * @param rows - keys of the rows that are shown, in order.
 */
export function useRoving(rows: readonly string[]): Roving {
  const [stop, setStop] = useState<RovingStop | undefined>(undefined)
  const current = stop !== undefined && rows.includes(stop.row) ? stop : { row: rows[0] ?? '', column: 0 }
  return {
    tabIndex: (row, column) => (row === current.row && column === current.column ? 0 : -1),
    onFocusIn: ({ target }) => {
      const at = placeOf(target)
      if (at !== undefined) setStop(at)
    },
    onKeyDown: (event) => {
      const next = nextButton(event)
      if (next === undefined) return
      event.preventDefault()
      next.focus()
    },
  }
}

function placeOf(target: EventTarget | null): RovingStop | undefined {
  const row = target instanceof Element ? target.closest<HTMLElement>('[data-row]') : null
  const column = row === null ? -1 : buttonsOf(row).findIndex((button) => button === target)
  return row === null || column < 0 ? undefined : { row: row.dataset['row'] ?? '', column }
}

function nextButton(event: KeyboardEvent): HTMLElement | undefined {
  const row = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-row]') : null
  const rows = [...(row?.parentElement?.querySelectorAll<HTMLElement>('[data-row]') ?? [])]
  if (row === null) return undefined
  const column = buttonsOf(row).findIndex((button) => button === event.target)
  if (event.key === 'Home') return buttonsOf(rows[0])[0]
  if (event.key === 'End') return buttonsOf(rows.at(-1))[0]
  const [down, right] = steps[event.key] ?? []
  if (down === undefined || right === undefined) return undefined
  const buttons = buttonsOf(down === 0 ? row : rows[rows.indexOf(row) + down])
  return buttons[down === 0 ? column + right : Math.min(column, buttons.length - 1)]
}

function buttonsOf(row: HTMLElement | undefined): HTMLElement[] {
  return [...(row?.querySelectorAll<HTMLElement>('button') ?? [])]
}
