import { GantryError } from '../errors.js'

/** What a failed send says against its records, as opposed to the far side or the way to it. */
export type Refusal = Readonly<{
  /** The far side's name of the error, or `CLIENT_ERROR`: one of few, as it labels a metric. */
  reason: string
  /** In the words of whoever refused. */
  detail: string
  /**
   * The record itself is at fault. Otherwise it may as well be everything that is sent now, such as a wrong clock: then the record is
   * at fault only if the far side takes others of the same partition.
   */
  certain: boolean
}>

/** Every record of a partition is refused, so that none of them is at fault: they wait. */
export class RecordsRefusedError extends GantryError {
  readonly code = 'GANTRY_SINK_UNAVAILABLE'
  readonly hint =
    'Look at the log and the settings of what takes the records; they wait in a bounded queue meanwhile.'
  override readonly retryable = true
  constructor(readonly refusal: Refusal) {
    super(`no record is taken now (${refusal.reason}: ${refusal.detail}); records wait`)
    this.name = 'RecordsRefusedError'
  }
}
