import {
  ServerInterceptingCall,
  ServerListenerBuilder,
  status as codes,
  type ServerInterceptor,
} from '@grpc/grpc-js'
import type { Log } from '../../lifecycle/log.js'

/** Methods of the inference service that change something which outlives the call, as `logChange` has it for HTTP. */
const changing =
  /\/(?:RepositoryModel(?:Load|Unload)|TraceSetting|LogSettings|\w*SharedMemory(?:Register|Unregister))$/

/** Writes a line for each call that changed something: who, what, from where. */
export function changesInterceptor(log: Log): ServerInterceptor {
  return (method, call) => {
    if (!changing.test(method.path)) return new ServerInterceptingCall(call)
    let by = 'nobody known'
    let asked: Readonly<Record<string, unknown>> = {}
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next(
          new ServerListenerBuilder()
            .withOnReceiveMetadata((metadata, proceed) => {
              if (metadata.get('authorization').length > 0) by = 'token'
              proceed(metadata)
            })
            .withOnReceiveMessage((message: unknown, proceed) => {
              asked = message as typeof asked
              proceed(message)
            })
            .build(),
        ),
      sendStatus: (status, next) => {
        if (status.code === codes.OK && !onlyAsks(asked))
          log.info({ from: call.getPeer(), by, method: method.path, ...nameIn(asked) }, 'changed by request')
        next(status)
      },
    })
  }
}

/** Settings are read by a call that gives none. */
function onlyAsks({ settings }: Readonly<Record<string, unknown>>): boolean {
  return typeof settings === 'object' && settings !== null && Object.keys(settings).length === 0
}

function nameIn({ model_name: model, name }: Readonly<Record<string, unknown>>) {
  return typeof model === 'string' ? { model } : typeof name === 'string' ? { region: name } : {}
}
