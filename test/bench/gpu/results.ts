import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Figures, machine, rounded } from '../bench.js'
import { nameOf, type Part, type Place } from './plan.js'

/** A measurement as it stands in the file, with its figures beside these. */
export type Line = Readonly<{
  name: string
  unit: string
  part: Part
  row: string
  column?: string
  /** The card it was taken on. */
  card: string
  machine: string
  takenAt: string
  /** Why there are no figures. */
  error?: string
  [figure: string]: string | number | undefined
}>

/**
 * Results that outlive the run that took them: each is a line of JSON, written as soon as it is known. The last line of a name counts.
 */
export class Results {
  readonly #lines = new Map<string, Line>()

  /** @param card - lines of another one are as if they were not there. */
  constructor(
    readonly path: string,
    readonly card: string,
  ) {
    for (const line of linesOf(path)) if (line.card === card) this.#lines.set(line.name, line)
  }

  /** Whether it has been taken; not where it failed. */
  has(name: string): boolean {
    const line = this.#lines.get(name)
    return line !== undefined && line.error === undefined
  }

  get lines(): readonly Line[] {
    return [...this.#lines.values()]
  }

  /** @returns the line as it was written. */
  add(part: Part, place: Place, unit: string, figures: Figures): string {
    const line: Line = {
      name: nameOf(place),
      unit,
      part,
      ...place,
      ...rounded(figures),
      card: this.card,
      machine: machine(),
      takenAt: new Date().toISOString(),
    }
    const text = JSON.stringify(line)
    mkdirSync(dirname(this.path), { recursive: true })
    // A run that was cut off may have left half a line.
    const torn = existsSync(this.path) && !/(?:^|\n)$/.test(readFileSync(this.path, 'utf8'))
    appendFileSync(this.path, `${torn ? '\n' : ''}${text}\n`)
    this.#lines.set(line.name, line)
    return text
  }
}

/** Cards that there are results of. */
export function cardsIn(path: string): readonly string[] {
  return [...new Set(linesOf(path).map(({ card }) => card))]
}

function linesOf(path: string): readonly Line[] {
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((text) => {
      try {
        const line = JSON.parse(text) as Line
        return typeof line.name === 'string' && typeof line.card === 'string' ? [line] : []
      } catch {
        return []
      }
    })
}
