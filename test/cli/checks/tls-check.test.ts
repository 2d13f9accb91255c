import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkTls } from '../../../src/cli/checks/tls-check.js'
import { pipelineSchema } from '../../../src/config/pipeline.js'
import { TestAuthority } from '../../support/test-authority.js'

let authority: TestAuthority

beforeAll(() => {
  authority = new TestAuthority()
})

afterAll(() => authority.remove())

function checked(name: string, expired: boolean, nowMs?: number) {
  const tls = { ...authority.issue(name, { expired }), clientCa: authority.ca }
  const config = pipelineSchema.parse({ apiVersion: 'gantry/v1', server: { tls } })
  return checkTls(config, nowMs).map(({ subject, state, detail }) => [
    subject,
    state,
    detail.replaceAll(`${authority.folder}/`, ''),
  ])
}

it('R86: tells how long certificates are good for', () => {
  // The authority of the test lives two days.
  expect(checked('mine', false)).toEqual([
    [
      'server.tls.cert',
      'warning',
      expect.stringMatching(/^mine\.pem: the certificate of CN=mine expires at /),
    ],
    ['server.tls.clientCa', 'warning', expect.stringMatching(/^ca\.pem: .* in 1 day$/)],
  ])
  expect(checked('old', true)[0]).toEqual([
    ...['server.tls.cert', 'failed'],
    'old.pem: the certificate of CN=old expired at 2020-02-01T00:00:00Z',
  ])
  const before2020 = Date.parse('2020-01-10T00:00:00Z')
  expect(checked('older', true, before2020)).toEqual([
    ['server.tls.cert', 'ok', 'older.pem: CN=older, until 2020-02-01'],
    ['server.tls.clientCa', 'failed', expect.stringMatching(/is not valid before/)],
  ])
})

it('has nothing to say without TLS', () => {
  expect(checkTls(pipelineSchema.parse({ apiVersion: 'gantry/v1' }))).toEqual([])
})
