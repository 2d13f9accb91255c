import type { ErrorRecord } from '../errors.js'

type Message<Type extends string, Body = unknown> = Readonly<{ type: Type; requestId: number } & Body>

/**
 * What an instance is told. The bodies belong to the backend that runs in the worker; their `ArrayBuffer`s are transferred.
 */
export type ToWorker<Load, Job> =
  Message<'load', { options: Load }> | Message<'run', { job: Job }> | Message<'stop'>

/** What it says before anything else, with the number of its thread, by `ownThread`. */
export type WorkerBegan = Readonly<{ type: 'began'; thread: number }>

/** What it answers: one message for each it was sent, in the same order. */
export type FromWorker<Ready, Result> =
  | Message<'ready', { info: Ready }>
  | Message<'done', { result: Result }>
  | Message<'failed', { error: ErrorRecord }>
  | Message<'stopped'>
