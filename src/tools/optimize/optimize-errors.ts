import { GantryError } from '../../errors.js'

/** A search that cannot be made as it was asked for. */
export class OptimizeSettingError extends GantryError {
  readonly code = 'GANTRY_USAGE'
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message)
    this.name = 'OptimizeSettingError'
  }
}

/** A folder of an earlier search that cannot be gone on with. */
export class OptimizeStateError extends GantryError {
  readonly code = 'GANTRY_OPTIMIZE_STATE'
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message)
    this.name = 'OptimizeStateError'
  }
}

/** Nothing that was tried keeps the limits. */
export class OptimizeLimitsError extends GantryError {
  readonly code = 'GANTRY_OPTIMIZE_LIMITS'
  constructor(
    message: string,
    readonly hint = 'Allow more, or search further: more --trials, --sizes, --forms or other values.',
  ) {
    super(message)
    this.name = 'OptimizeLimitsError'
  }
}

/** A running service has tried the result, and gone back to what it ran before. */
export class NotAppliedError extends GantryError {
  readonly code = 'GANTRY_OPTIMIZE_LIMITS'
  readonly hint =
    'The result is in its repository all the same; try it with other limits, or look at the figures of the service.'
  constructor(
    url: string,
    {
      name,
      outcome,
      reason,
      before,
    }: Readonly<{ name: string; outcome: string; reason: string; before: string }>,
  ) {
    super(
      `${url}: "${name}" was ${outcome === 'refused' ? 'refused' : 'taken back'}, cameras run "${before}": ${reason}`,
    )
    this.name = 'NotAppliedError'
  }
}
