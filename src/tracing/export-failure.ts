import type { TracingTarget } from '../config/tracing.js'
import { tlsFailure } from '../lifecycle/tls-failure.js'

/** What Node says of TLS where gRPC passes on the words alone. */
const codesOfWords: readonly (readonly [RegExp, string])[] = [
  [/self-signed certificate in certificate chain/i, 'SELF_SIGNED_CERT_IN_CHAIN'],
  [/self-signed certificate/i, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  [/unable to get (local )?issuer/i, 'UNABLE_TO_GET_ISSUER_CERT'],
  [/unable to verify the first certificate/i, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  [/certificate has expired/i, 'CERT_HAS_EXPIRED'],
  [/certificate is not yet valid/i, 'CERT_NOT_YET_VALID'],
  [/does not match certificate's altnames/i, 'ERR_TLS_CERT_ALTNAME_INVALID'],
  [/wrong version number|packet length too long/i, 'ERR_SSL_WRONG_VERSION_NUMBER'],
]

/** Why spans do not arrive, and what to do about it, for people. @param error - of an exporter. */
export function exportFailure(
  error: unknown,
  { protocol }: TracingTarget,
): Readonly<{ reason: string; fix: string }> {
  const causes = [...causesOf(error)]
  const tls = causes
    .map((cause) => tlsFailure(withCode(cause), 'tracing.tls', 'an http:// URL in tracing.endpoint'))
    .find((advice) => advice !== undefined)
  if (tls !== undefined) return tls
  const reason = reasonOf(causes)
  if (isLogin(causes))
    return { reason, fix: 'correct tracing.headers: what takes traces wants another login' }
  // Each port answers the other's protocol with nothing that can be understood.
  const other = protocol === 'grpc' ? 'http/protobuf (usually port 4318)' : 'grpc (usually port 4317)'
  return {
    reason,
    fix: `start what collects traces, or correct tracing.endpoint; for ${other} set tracing.protocol`,
  }
}

function withCode(error: unknown): unknown {
  if (!(error instanceof Error) || typeof (error as { code?: unknown }).code === 'string') return error
  const code = codesOfWords.find(([words]) => words.test(error.message))?.[1]
  return code === undefined ? error : Object.assign(new Error(error.message), { code })
}

function reasonOf(causes: readonly unknown[]): string {
  const [first] = causes
  const code = (first as { code?: unknown } | undefined)?.code
  const messages = causes.map((cause) => (cause instanceof Error ? cause.message : String(cause)))
  const text = messages.find((message) => message !== '') ?? 'no answer'
  return typeof code === 'number' && code >= 100 ? `answered ${code} ${text}` : text
}

/** 401 and 403 of HTTP, 16 and 7 of gRPC. */
function isLogin(causes: readonly unknown[]): boolean {
  return causes.some((cause) => [401, 403, 16, 7].includes(Number((cause as { code?: unknown }).code)))
}

function* causesOf(error: unknown): Generator<unknown> {
  let next = error
  for (let depth = 0; depth < 8 && next !== undefined && next !== null; depth += 1) {
    yield next
    if (next instanceof AggregateError) yield* next.errors
    next = next instanceof Error ? next.cause : undefined
  }
}
