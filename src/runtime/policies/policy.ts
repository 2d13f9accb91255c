/** What an idle instance does next. */
export type BatchDecision =
  | Readonly<{ kind: 'idle' }>
  | Readonly<{ kind: 'wait'; forMs: number }>
  /** `count` of what waits, from the front. */
  | Readonly<{ kind: 'run'; count: number }>

/**
 * What waits for the instances of a model and which of it runs when, with no clock and no timer; the scheduler owns those.
 *
 * `NewestPerStream` serves cameras, `Dynamic` requests that know nothing of each other. What sequences do in the slots of an instance
 * is told by `SequenceStrategy`.
 */
export interface Policy<T> {
  /** How much waits. */
  readonly waiting: number
  decide(nowMs: number): BatchDecision
  /** How many from the front are worth handing over behind a run that has begun; 0: none. */
  ahead(nowMs: number): number
  /** Takes up to `count` from the front. */
  take(count: number): T[]
}
