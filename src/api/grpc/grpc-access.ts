import { ServerInterceptingCall, ServerListenerBuilder, status, type ServerInterceptor } from '@grpc/grpc-js'
import { carriedToken, tokenMatches, type AccessHeaders } from '../access.js'
import type { TokenGuesses } from '../token-guesses.js'

/** Health is open, as it is over HTTP: who asks it seldom has a token. */
const openPaths: ReadonlySet<string> = new Set([
  '/grpc.health.v1.Health/Check',
  '/grpc.health.v1.Health/Watch',
  '/inference.GRPCInferenceService/ServerLive',
  '/inference.GRPCInferenceService/ServerReady',
])

/** Refuses calls without the token, as `authorization: Bearer <token>`, before their message is read. */
export function tokenInterceptor(token: string, guesses: TokenGuesses): ServerInterceptor {
  return (method, call) =>
    new ServerInterceptingCall(call, {
      start: (next) => {
        const listener = new ServerListenerBuilder()
          .withOnReceiveMetadata((metadata, proceed) => {
            if (openPaths.has(method.path)) return proceed(metadata)
            const [authorization] = metadata.get('authorization')
            const headers = { authorization: authorization?.toString() }
            guesses.look(addressOf(call.getPeer()), headers, { token }).then(
              () => {
                if (isAllowed(headers, token)) proceed(metadata)
                else
                  call.sendStatus({ code: status.UNAUTHENTICATED, details: 'the token is missing or wrong' })
              },
              (error: unknown) => {
                const details = error instanceof Error ? error.message : String(error)
                call.sendStatus({ code: status.RESOURCE_EXHAUSTED, details })
              },
            )
          })
          .build()
        next(listener)
      },
    })
}

/** @param peer - address and port. */
function addressOf(peer: string): string {
  return peer.replace(/:\d+$/, '')
}

function isAllowed(headers: AccessHeaders, token: string): boolean {
  const given = carriedToken(headers)
  return given !== undefined && tokenMatches(token, given)
}
