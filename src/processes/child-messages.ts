import type { ErrorRecord } from '../errors.js'
import type { Said } from './frame-channel.js'

type Message<Type extends string, Body = unknown> = Readonly<{ type: Type } & Body>

/** What every supervised process says, besides its own messages. `ready` and `beat` may carry more. */
export type FromChild =
  | Message<'online'>
  | Message<'ready'>
  | Message<'failed', { error: ErrorRecord }>
  | Message<'beat'>
  | Message<'answer', { requestId: number; value: unknown }>
  | Message<'refused', { requestId: number; error: ErrorRecord }>
  | Message<'stopped'>

/** What is left for the owner of a process: all that is not seen to here. Beats are seen to in both places. */
export type OwnMessage<From extends Said> = Exclude<From, Said<Exclude<FromChild['type'], 'beat'>>>

const shared: Readonly<Record<FromChild['type'], true>> = {
  online: true,
  ready: true,
  failed: true,
  beat: true,
  answer: true,
  refused: true,
  stopped: true,
}

/** It is seen to where the process is supervised. */
export function isShared(message: Said): message is FromChild {
  return Object.hasOwn(shared, message.type)
}

export function isOwn<From extends Said>(message: From): message is OwnMessage<From> {
  return !isShared(message) || message.type === 'beat'
}
