import { GantryError } from '../../errors.js'

/** A load that was asked for and cannot be made. */
export class PerfSettingError extends GantryError {
  readonly code = 'GANTRY_USAGE'
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message)
    this.name = 'PerfSettingError'
  }
}

/** Not one request of a level was answered as it should be. */
export class NothingMeasuredError extends GantryError {
  readonly code = 'GANTRY_MODEL_SERVER'
  readonly hint: string
  constructor(level: string, cause: GantryError | undefined) {
    super(
      `${level}: no request was answered${cause === undefined ? ' within the windows' : `: ${cause.message}`}`,
      {
        cause,
      },
    )
    this.name = 'NothingMeasuredError'
    this.hint = cause?.hint ?? 'A run of this model takes longer than a window: raise --window-ms.'
  }
}
