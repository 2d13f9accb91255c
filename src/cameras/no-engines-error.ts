import { GantryError } from '../errors.js'

/** A camera for a service that is a model server alone. */
export class NoEnginesError extends GantryError {
  readonly code = 'GANTRY_ENGINE_UNAVAILABLE'
  readonly hint = 'Set engines to 1 or more in the pipeline file, and ensemble to a detector.'
  constructor() {
    super('this service takes no cameras: it was started with engines: 0')
    this.name = 'NoEnginesError'
  }
}
