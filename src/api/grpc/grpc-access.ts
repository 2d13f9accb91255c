import {
  type Metadata,
  ServerInterceptingCall,
  ServerListenerBuilder,
  status,
  type ServerInterceptor,
} from '@grpc/grpc-js'
import { carriedToken, tokenMatches } from '../access.js'

/** Health is open, as it is over HTTP: who asks it seldom has a token. */
const openPaths: ReadonlySet<string> = new Set([
  '/grpc.health.v1.Health/Check',
  '/grpc.health.v1.Health/Watch',
  '/inference.GRPCInferenceService/ServerLive',
  '/inference.GRPCInferenceService/ServerReady',
])

/** Refuses calls without the token, as `authorization: Bearer <token>`, before their message is read. */
export function tokenInterceptor(token: string): ServerInterceptor {
  return (method, call) =>
    new ServerInterceptingCall(call, {
      start: (next) => {
        const listener = new ServerListenerBuilder()
          .withOnReceiveMetadata((metadata, proceed) => {
            if (openPaths.has(method.path) || isAllowed(metadata, token)) proceed(metadata)
            else call.sendStatus({ code: status.UNAUTHENTICATED, details: 'the token is missing or wrong' })
          })
          .build()
        next(listener)
      },
    })
}

function isAllowed(metadata: Metadata, token: string): boolean {
  const [authorization] = metadata.get('authorization')
  const given = carriedToken({ authorization: authorization?.toString() })
  return given !== undefined && tokenMatches(token, given)
}
