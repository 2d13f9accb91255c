import { GantryError } from '../../errors.js'

/** Something that a GPU installation needs is not to be had here. */
export class GpuInstallError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message)
    this.name = 'GpuInstallError'
  }
}
