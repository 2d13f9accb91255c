import {
  ServerInterceptingCall,
  ServerListenerBuilder,
  status,
  type ServerInterceptor,
  type StatusObject,
} from '@grpc/grpc-js'
import { setMaxListeners } from 'node:events'
import { atMost } from '../../lifecycle/delay.js'

/** What asks whether to ask here is answered to the end. */
const aboutHealth =
  /^\/(grpc\.health\.v1\.Health\/\w+|inference\.GRPCInferenceService\/(ServerLive|ServerReady|ModelReady))$/
const ofModels = '/inference.GRPCInferenceService/'

/** What a call is told that comes too late. */
export const stoppingStatus = {
  code: status.UNAVAILABLE,
  details: 'the server is stopping',
} satisfies Partial<StatusObject>

/** Calls that were begun and have not got their status, so that a stop can wait for them while it refuses others. */
export class CallsUnderWay {
  readonly #calls = new Set<ServerInterceptingCall>()
  readonly #draining = new AbortController()
  #idle: (() => void) | undefined

  constructor() {
    // Every stream listens.
    setMaxListeners(0, this.#draining.signal)
  }

  /** Aborts when no more is taken: whoever reads a stream ends it with {@link stoppingStatus}. */
  get draining(): AbortSignal {
    return this.#draining.signal
  }

  readonly interceptor: ServerInterceptor = ({ path }, call) => {
    if (aboutHealth.test(path)) return new ServerInterceptingCall(call)
    if (this.#draining.signal.aborted) return refused(call)
    return path.startsWith(ofModels) ? this.#counted(call) : new ServerInterceptingCall(call)
  }

  refuse(): void {
    this.#draining.abort()
  }

  /** Resolves when no call is under way, or after `withinMs`. */
  async answered(withinMs: number): Promise<void> {
    if (this.#calls.size > 0) await atMost(withinMs, new Promise<void>((resolve) => (this.#idle = resolve)))
  }

  #counted(call: ConstructorParameters<typeof ServerInterceptingCall>[0]): ServerInterceptingCall {
    const end = (): void => {
      if (this.#calls.delete(counted) && this.#calls.size === 0) this.#idle?.()
    }
    const counted = new ServerInterceptingCall(call, {
      start: (next) => next(new ServerListenerBuilder().withOnCancel(end).build()),
      sendStatus: (given, next) => {
        next(given)
        end()
      },
    })
    this.#calls.add(counted)
    return counted
  }
}

function refused(call: ConstructorParameters<typeof ServerInterceptingCall>[0]): ServerInterceptingCall {
  return new ServerInterceptingCall(call, {
    start: (next) =>
      next(new ServerListenerBuilder().withOnReceiveMetadata(() => call.sendStatus(stoppingStatus)).build()),
  })
}
