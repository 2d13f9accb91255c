import type { ExecutionProvider } from '../../config/inference.js'
import { type BatchSizes, sizeFor } from '../../runtime/batch-sizes.js'
import { type CardMemory, takenBy } from './card-memory.js'
import { openOrtSession, type OrtSessionOptions } from './ort-session.js'
import { ProviderUnavailableError, type ProviderNote } from './provider-notes.js'
import { oneShape } from './providers.js'
import type { OrtSession } from './session.js'

type BySize = ReadonlyMap<number, OrtSession>

/**
 * The sessions of an instance: one for all batches, or, where the provider plans for one shape ({@link oneShape}), one for each size of
 * batch, so that none ever sees another.
 */
export class Sessions {
  /** Ascending; undefined: batches run as they are. */
  readonly sizes: BatchSizes | undefined

  private constructor(
    readonly provider: ExecutionProvider,
    /** Why each provider before it does not run. */
    readonly notes: readonly ProviderNote[],
    /** One of them: what it says of the model holds for all. */
    readonly first: OrtSession,
    readonly bySize: BySize | undefined,
    /** Why sizes that were asked for have none. */
    readonly leftOut: string | undefined,
    /**
     * Of the card's memory, what a session took before its first run, in the mean of all but the first, which brings with it what the process
     * needs on the card; undefined where nothing tells, or there is one alone.
     */
    readonly openedBytes: number | undefined,
  ) {
    this.sizes = bySize && [...bySize.keys()].sort((a, b) => a - b)
  }

  /**
   * Opens them on the first provider that takes the model. Where there is no room for all sizes, the largest is there, and as many of the
   * smaller ones as fit.
   *
   * @param sizes - ascending; undefined for models without a batch dimension.
   * @param memory - of the card, where what they take of it is to be known.
   * @throws what {@link openOrtSession} throws
   */
  static async open(
    options: OrtSessionOptions,
    sizes: BatchSizes | undefined,
    memory?: CardMemory,
  ): Promise<Sessions> {
    const { session, provider, notes } = await openOrtSession(options)
    const largest = sizes?.at(-1)
    if (!oneShape(provider) || sizes === undefined || largest === undefined)
      return new Sessions(provider, notes, session, undefined, undefined, undefined)
    const bySize = new Map([[largest, session]])
    const smaller = sizes.slice(0, -1)
    const opening = () => openAll({ ...options, providers: [provider] }, smaller, bySize)
    const { result: leftOut, bytes } = await takenBy(memory, opening)
    const opened = bytes === undefined || bySize.size < 2 ? undefined : bytes / (bySize.size - 1)
    return new Sessions(provider, notes, session, bySize, leftOut, opened)
  }

  /** Rows that a batch of so many items runs with. */
  rowsFor(items: number): number {
    return this.sizes === undefined ? items : sizeFor(this.sizes, items)
  }

  /** @param rows - of {@link rowsFor}. */
  of(rows: number): OrtSession {
    const session = this.bySize === undefined ? this.first : this.bySize.get(rows)
    if (session === undefined) throw new RangeError(`no session runs ${rows} rows`)
    return session
  }

  async release(): Promise<void> {
    for (const session of this.bySize?.values() ?? [this.first]) await session.release()
  }
}

/** Opens a session for each size, as far as there is room. @returns why the others have none. @throws what {@link openOrtSession} throws */
async function openAll(
  options: OrtSessionOptions,
  sizes: BatchSizes,
  bySize: Map<number, OrtSession>,
): Promise<string | undefined> {
  for (const size of sizes) {
    try {
      bySize.set(size, (await openOrtSession(options)).session)
    } catch (error) {
      if (error instanceof ProviderUnavailableError) return error.notes.map(({ reason }) => reason).join('; ')
      for (const opened of bySize.values()) await opened.release()
      throw error
    }
  }
  return undefined
}
