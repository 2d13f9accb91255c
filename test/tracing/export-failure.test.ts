import { describe, expect, it } from 'vitest'
import { tracingSchema } from '../../src/config/tracing.js'
import { exportFailure } from '../../src/tracing/export-failure.js'

const target = { ...tracingSchema.parse({}), endpoint: 'https://collector:4318' }
const coded = (message: string, code: unknown) => Object.assign(new Error(message), { code })

describe('exportFailure', () => {
  it.each<[string, unknown, string, string]>([
    ['nobody there', coded('connect ECONNREFUSED', 'ECONNREFUSED'), 'ECONNREFUSED', 'tracing.endpoint'],
    ['a wrong path', coded('Not Found', 404), 'answered 404 Not Found', 'tracing.endpoint'],
    ['a wrong token', coded('Unauthorized', 401), 'answered 401', 'tracing.headers'],
    ['an issuer, by HTTP', coded('x', 'SELF_SIGNED_CERT_IN_CHAIN'), 'CA that is trusted', 'tracing.tls.ca'],
    ['a name', coded('x', 'ERR_TLS_CERT_ALTNAME_INVALID'), 'another name', 'tracing.tls.servername'],
    [
      'an issuer, by gRPC',
      coded('14 UNAVAILABLE: Last error: Error: unable to get local issuer certificate', 14),
      'CA that is trusted',
      'tracing.tls.ca',
    ],
    ['a login, by gRPC', coded('16 UNAUTHENTICATED: no', 16), 'UNAUTHENTICATED', 'tracing.headers'],
    [
      'a cause behind it',
      new Error('request failed', { cause: coded('x', 'CERT_HAS_EXPIRED') }),
      'expired',
      'renew it',
    ],
    [
      'both addresses',
      new AggregateError([coded('connect ECONNREFUSED ::1', 'E')]),
      'ECONNREFUSED ::1',
      'start what',
    ],
    ['a text', 'broken', 'broken', 'tracing.endpoint'],
    ['nothing', undefined, 'no answer', 'tracing.endpoint'],
  ])('says what to do about %s', (_, error, reason, fix) => {
    const found = exportFailure(error, target)
    expect(found.reason).toContain(reason)
    expect(found.fix).toContain(fix)
  })

  it('names the other protocol', () => {
    expect(exportFailure(undefined, target).fix).toContain('grpc (usually port 4317)')
    expect(exportFailure(undefined, { ...target, protocol: 'grpc' }).fix).toContain('http/protobuf')
  })
})
