import type { OrderKey } from '../order-key.js'

/** A stored result. */
export type StoredResult = Readonly<{ key: OrderKey; json: string }>

/** Keys under our names that somebody else wrote: nothing is done with them. */
export type Foreign = readonly string[]

/** Results of one look at the index; `last` is the oldest key looked at, whether or not it was a result. */
export type StoredPage = Readonly<{
  looked: number
  last: OrderKey
  results: readonly StoredResult[]
  foreign: Foreign
}>

export type StoredPut = Readonly<{
  cameraId: string
  json: Buffer
  key: OrderKey
  ttlMs: number
  capacity: number
  expired: OrderKey
  recentTtlMs: number
}>

export type PageQuery = Readonly<{
  cameraId: string | undefined
  atLeast: OrderKey
  below: OrderKey
  /** Most keys to look at, and most results. */
  look: number
  most: number
  /** Text that a result must contain, or ''. */
  contains: string
}>

/** Results of cameras as they lie in Redis. */
export interface ResultStore {
  put(put: StoredPut): Promise<Foreign>
  latest(cameraId: string): Promise<Readonly<{ json: string | undefined; foreign: Foreign }>>
  page(query: PageQuery): Promise<StoredPage>
  forget(cameraId: string): Promise<Foreign>
}
