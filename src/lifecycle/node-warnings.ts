/** What Node, a library or a model warns of by `process.emitWarning`. */
export type NodeWarning = Readonly<{
  /** `DeprecationWarning`. */
  name: string
  /** `DEP0040`, where there is one. */
  code?: string | undefined
  message: string
  /** Where in the code it comes from. */
  stack?: string | undefined
}>

/** Where the process puts its messages; a `Log` is one. */
export type WarningLog = Readonly<{
  warn(fields: Readonly<{ warning: NodeWarning }>, text: string): void
}>

/** A model of a user may warn with other words each time. */
const maxKinds = 100

/** What dependencies do that harms nobody and that we cannot change. */
const harmless: readonly ((warning: NodeWarning) => boolean)[] = [
  // kafkajs looks for requests that wait with a time of `-1 - now`, which Node takes as 1 ms.
  ({ name, stack = '' }) => name === 'TimeoutNegativeWarning' && /[\\/]kafkajs[\\/]/.test(stack),
  // The store is on the SQLite of Node, also where Node 22 calls that an experiment.
  ({ name, message }) => name === 'ExperimentalWarning' && message.startsWith('SQLite '),
]

/** Whether a dependency warns of what we know and cannot change. */
export function isHarmless(warning: NodeWarning): boolean {
  return harmless.some((is) => is(warning))
}

/** Numbers in it, such as a count of listeners, make it no other kind. */
function kindOf({ name, code, message }: NodeWarning): string {
  return `${name} ${code ?? message.replaceAll(/\d+/g, '')}`
}

/** Tells each kind of warning once. Those that come before there is a log wait for it. */
export class NodeWarnings {
  readonly #kinds = new Set<string>()
  #waiting: NodeWarning[] = []
  #log: WarningLog | undefined

  take(warning: NodeWarning): void {
    const kind = kindOf(warning)
    if (this.#kinds.size >= maxKinds || this.#kinds.has(kind)) return
    if (isHarmless(warning)) return
    this.#kinds.add(kind)
    if (this.#log) this.#log.warn({ warning }, warning.message)
    else this.#waiting.push(warning)
  }

  tell(log: WarningLog): void {
    this.#log = log
    for (const warning of this.#waiting) log.warn({ warning }, warning.message)
    this.#waiting = []
  }
}

/** Those of this process, which come here where `catch-warnings.ts` was imported. */
export const nodeWarnings = new NodeWarnings()
