import type { MessagePort } from 'node:worker_threads'
import { type ErrorRecord, toErrorRecord } from '../errors.js'
import { ownThread } from '../lifecycle/memory-use.js'
import { byTrueName } from '../lifecycle/system-limit.js'

type Message<Type extends string, Body = unknown> = Readonly<{ type: Type; requestId: number } & Body>

/**
 * What an instance is told. The bodies belong to the backend that runs in the worker; their `ArrayBuffer`s are transferred.
 */
export type ToWorker<Load, Job> =
  Message<'load', { options: Load }> | Message<'run', { job: Job }> | Message<'stop'>

/** What it says of itself before anything: the number of its thread, by `ownThread`. */
export type WorkerBegan = Readonly<{ type: 'began'; thread: number }>

/** What it answers: one message for each it was sent, in the same order. */
export type FromWorker<Ready, Result> =
  | Message<'ready', { info: Ready }>
  | Message<'done', { result: Result }>
  | Message<'failed', { error: ErrorRecord }>
  | Message<'stopped'>

/** A result and the buffers in it that are to be transferred. */
export type Outgoing<Result> = Readonly<{ result: Result; transfer: readonly ArrayBuffer[] }>

/** What a worker thread runs. Calls come one at a time: `load` once, any number of `run`, `release` at the end. */
export interface WorkerBackend<Load, Ready, Job, Result> {
  load(options: Load): Promise<Ready>
  run(job: Job): Promise<Outgoing<Result>>
  release(): Promise<void>
}

/**
 * Serves a backend on a port until it is told to stop. The thread then ends by itself, as nothing keeps it: it must not be
 * terminated, because ending a thread inside a native call aborts the process.
 */
export function serveWorker<Load, Ready, Job, Result>(
  port: MessagePort,
  backend: WorkerBackend<Load, Ready, Job, Result>,
): void {
  let last = Promise.resolve()
  port.postMessage({ type: 'began', thread: ownThread() } satisfies WorkerBegan)
  port.on('message', (message: ToWorker<Load, Job>) => {
    last = last.then(() => answer(port, backend, message))
  })
}

async function answer<Load, Ready, Job, Result>(
  port: MessagePort,
  backend: WorkerBackend<Load, Ready, Job, Result>,
  message: ToWorker<Load, Job>,
): Promise<void> {
  const { requestId } = message
  const post = (answered: FromWorker<Ready, Result>, transfer: readonly ArrayBuffer[] = []) =>
    port.postMessage(answered, transfer)
  try {
    switch (message.type) {
      case 'load': {
        const info = await backend.load(message.options)
        post({ type: 'ready', requestId, info })
        return
      }
      case 'run': {
        const { result, transfer } = await backend.run(message.job)
        post({ type: 'done', requestId, result }, transfer)
        return
      }
      case 'stop':
        await backend.release()
        post({ type: 'stopped', requestId })
        port.close()
        return
      default:
        message satisfies never
    }
  } catch (error) {
    const named = byTrueName(`cannot ${message.type} the model`, error)
    post({ type: 'failed', requestId, error: toErrorRecord(named) })
    if (message.type === 'stop') port.close()
  }
}
