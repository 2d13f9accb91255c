import { GantryError } from '../src/errors.js'

/** A scenario that cannot be used; `problems` holds every finding with its path. */
export class ScenarioError extends GantryError {
  readonly code = 'GANTRY_CONFIG'
  readonly hint = 'The schema is sim/scenario/schema.ts; `npm run sim -- list` names the scenarios there are.'

  constructor(
    readonly scenario: string,
    readonly problems: readonly string[],
  ) {
    super(`scenario "${scenario}": ${problems.join('; ')}`)
    this.name = 'ScenarioError'
  }
}

/** A folder of pictures that cannot take those asked for. */
export class DatasetError extends GantryError {
  readonly code = 'GANTRY_CONFIG'
  readonly hint = 'Give the options it was begun with, or another --out.'

  constructor(message: string) {
    super(message)
    this.name = 'DatasetError'
  }
}

/** The browser or ffmpeg did not deliver what was asked of it. */
export class RenderError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint =
    'Rendering needs Chromium (/usr/bin/chromium or SIM_CHROMIUM) and ffmpeg with libx264 on the PATH.'

  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'RenderError'
  }
}
