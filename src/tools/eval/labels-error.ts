import { GantryError } from '../../errors.js'

/** Labels of a data set cannot be used, or do not fit the pictures or the model. */
export class LabelsError extends GantryError {
  readonly code = 'GANTRY_LABELS'
  constructor(
    message: string,
    readonly hint: string,
    cause?: unknown,
  ) {
    super(message, { cause })
    this.name = 'LabelsError'
  }
}

/** Shown of many faults of one kind. */
const mostShown = 5

/** The first few, each on a line, and how many more there are. */
export function firstFew(faults: readonly string[]): string {
  const more = faults.length - mostShown
  return [...faults.slice(0, mostShown), ...(more > 0 ? [`and ${more} more`] : [])].join('\n')
}
