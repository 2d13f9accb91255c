import type { HeadPlan } from './heads/head.js'
import { labelOf, namesBackground } from './heads/label-list.js'

/**
 * What becomes of a class that the model gives:
 * - `class`: it is published under `label`
 * - `unnamed`: the list has no name for it; it is published as `label`, which is made up
 * - `nothing`: it stands for the background and is not published
 */
export type HeadClass = Readonly<{
  /** Column of scores, or number of the class, as the model gives it. */
  id: number
  /** Empty where nothing is published and the list has no word for it either. */
  label: string
  use: 'class' | 'unnamed' | 'nothing'
}>

/**
 * Every class that a head is known to give, with its name.
 *
 * @param labels - of the detector's plan.
 */
export function classTable(
  { lines = [], options }: HeadPlan,
  labels: readonly string[],
): readonly HeadClass[] {
  return lines.map((line, id): HeadClass => {
    if (line < 0) {
      const label = labels[id - (options?.firstClass ?? 0)] ?? ''
      return { id, label: namesBackground(label) ? label : '', use: 'nothing' }
    }
    const label = labelOf(labels, line)
    return label === undefined ? { id, label: `class_${line}`, use: 'unnamed' } : { id, label, use: 'class' }
  })
}

/** A class for people: `1 helmet`, `0 nothing (__background__)`, `12 class_12 (no name)`. */
export function classText({ id, label, use }: HeadClass): string {
  if (use === 'nothing') return `${id} nothing${label === '' ? '' : ` (${label})`}`
  return `${id} ${label}${use === 'unnamed' ? ' (no name)' : ''}`
}
