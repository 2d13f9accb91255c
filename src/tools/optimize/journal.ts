import { appendFile, open, readFile } from 'node:fs/promises'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { OptimizeStateError } from './optimize-errors.js'

type Line = Readonly<{ key: string; value: unknown }>

/** Results as they come, a line of JSON each, on the disk before the next begins: what was measured once is not measured again. */
export class Journal {
  readonly #known: Map<string, unknown>

  private constructor(
    readonly path: string,
    known: ReadonlyMap<string, unknown>,
  ) {
    this.#known = new Map(known)
  }

  /**
   * @param subject - what the run is of, as one text: a journal of another one is refused.
   * @throws OptimizeStateError `GANTRY_OPTIMIZE_STATE`; SystemLimitError
   */
  static async open(path: string, subject: string): Promise<Journal> {
    const lines = await linesOf(path)
    const known = new Map(lines.map(({ key, value }) => [key, value]))
    const journal = new Journal(path, known)
    const before = known.get(subjectKey) as string | undefined
    // Of another search that has measured nothing there is nothing to lose.
    if (before === undefined || (before !== subject && known.size === 1))
      await journal.#keep(subjectKey, subject)
    else if (before !== subject)
      throw new OptimizeStateError(
        `${path} is of another search: ${difference(before, subject)}`,
        'Give the settings it was begun with, or name another folder with --work, or begin anew with --restart.',
      )
    return journal
  }

  /** Results that are known; those of this run and of those before it. */
  get size(): number {
    return this.#known.size - 1
  }

  has(key: string): boolean {
    return this.#known.has(key)
  }

  /**
   * What a key stands for: as it was kept, else as it is made now, and kept.
   *
   * @param make - its result must be the same after a way through JSON.
   * @throws what `make` throws; SystemLimitError where it cannot be kept
   */
  async once<T>(key: string, make: () => Promise<T>): Promise<T> {
    if (this.#known.has(key)) return this.#known.get(key) as T
    const value = await make()
    await this.#keep(key, value)
    return value
  }

  async #keep(key: string, value: unknown): Promise<void> {
    try {
      const file = await open(this.path, 'a')
      try {
        await file.appendFile(`${JSON.stringify({ key, value })}\n`)
        await file.datasync()
      } finally {
        await file.close()
      }
    } catch (error) {
      throw byTrueName(`${this.path} cannot be written`, error)
    }
    this.#known.set(key, value)
  }
}

const subjectKey = 'subject'

/** Of a line that was cut by the end of its process nothing is kept, and what comes next begins a line of its own. */
async function linesOf(path: string): Promise<readonly Line[]> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw byTrueName(`${path} cannot be read`, error)
  }
  const whole = text.split('\n')
  const cut = whole.pop()
  if (cut !== undefined && cut !== '') await appendFile(path, '\n')
  return whole.flatMap((line) => lineIn(line) ?? [])
}

function lineIn(text: string): Line | undefined {
  try {
    const line = JSON.parse(text) as Partial<Line>
    return typeof line.key === 'string' ? { key: line.key, value: line.value } : undefined
  } catch {
    return undefined
  }
}

/** Of two texts of settings, `name: value` on each line. */
function difference(before: string, now: string): string {
  const [was, is] = [before.split('\n'), now.split('\n')]
  const at = is.findIndex((line, index) => line !== was[index])
  return `it was begun with ${was[at] ?? was.at(-1) ?? ''}, and this one has ${is[at] ?? 'nothing there'}`
}
