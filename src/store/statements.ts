import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'

export type Row = Readonly<Record<string, SQLInputValue | undefined>>

/** Statements of one connection, each prepared once. */
export class Statements {
  readonly #prepared = new Map<string, StatementSync>()
  #synchronous = 'NORMAL'

  constructor(readonly db: DatabaseSync) {}

  run(sql: string, ...values: SQLInputValue[]): void {
    this.#statement(sql).run(...values)
  }

  all(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#statement(sql).all(...values)
  }

  /** One row after the other, for who may stop before the last. */
  each(sql: string, ...values: SQLInputValue[]): IterableIterator<Row> {
    return this.#statement(sql).iterate(...values)
  }

  /** The column `n` of the one row; 0 for NULL and for none. */
  number(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.all(sql, ...values)[0]?.['n'] ?? 0)
  }

  /** All of it or nothing. @param durable - on the disk when this returns, not only in the hands of the system. */
  together<T>(durable: boolean, work: () => T): T {
    const synchronous = durable ? 'FULL' : 'NORMAL'
    if (synchronous !== this.#synchronous) this.db.exec(`PRAGMA synchronous = ${synchronous}`)
    this.#synchronous = synchronous
    this.run('BEGIN IMMEDIATE')
    try {
      const result = work()
      this.run('COMMIT')
      return result
    } catch (error) {
      // After some errors SQLite has rolled back already.
      if (this.db.isTransaction) this.run('ROLLBACK')
      throw error
    }
  }

  #statement(sql: string): StatementSync {
    const known = this.#prepared.get(sql)
    if (known !== undefined) return known
    const statement = this.db.prepare(sql)
    this.#prepared.set(sql, statement)
    return statement
  }
}

/** '' for NULL. */
export function columnText(value: SQLInputValue | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** None for NULL. */
export function blobOf(value: SQLInputValue | undefined): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array()
}
