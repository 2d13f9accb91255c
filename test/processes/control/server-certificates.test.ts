import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { validityOf } from '../../../src/config/server-tls.js'
import { createTlsMetrics } from '../../../src/metrics/tls-metrics.js'
import { ServerCertificates } from '../../../src/processes/control/server-certificates.js'
import { recordingLog } from '../../support/silent-log.js'
import { type IssuedFiles, TestAuthority } from '../../support/test-authority.js'

let authority: TestAuthority
let files: IssuedFiles

beforeAll(() => {
  authority = new TestAuthority()
  const { cert, key } = authority.issue('first')
  files = { cert: join(authority.folder, 'tls.crt'), key: join(authority.folder, 'tls.key') }
  copyFileSync(cert, files.cert)
  copyFileSync(key, files.key)
})

afterAll(() => authority.remove())

function place({ cert, key }: IssuedFiles): void {
  copyFileSync(cert, files.cert)
  copyFileSync(key, files.key)
}

function started(clock?: () => number) {
  const { log, lines } = recordingLog()
  const metrics = createTlsMetrics(new Registry())
  const certificates = new ServerCertificates({ ...files, clientCa: authority.ca }, metrics, log, {
    ...(clock && { clock }),
  })
  onTestFinished(() => certificates.close())
  certificates.start()
  return { certificates, lines, metrics }
}

it('R87: warns of a certificate 14 days before its end, and tells that to Prometheus', async () => {
  const { untilMs } = validityOf(authority.text(files.cert))
  const early = started(() => untilMs - 15 * 24 * 3_600_000)
  expect(early.lines.filter(({ setting }) => setting === 'server.tls.cert')).toEqual([
    expect.objectContaining({ reason: expect.stringContaining('is not valid before') as unknown }),
  ])
  const { lines, metrics } = started()
  expect(lines).toEqual([
    expect.objectContaining({
      level: 40,
      setting: 'server.tls.cert',
      msg: 'a certificate of server.tls has to be renewed',
    }),
    expect.objectContaining({ setting: 'server.tls.clientCa' }),
  ])
  expect((await metrics.expiry.get()).values).toEqual([
    expect.objectContaining({ labels: { file: 'cert' }, value: untilMs / 1_000 }),
    expect.objectContaining({ labels: { file: 'clientCa' } }),
  ])
})

it('R88: reads the files at once when it is asked to, and tells at once what is wrong', async () => {
  place(authority.issue('before'))
  const { certificates, lines } = started()
  const told: string[] = []
  certificates.onChange(({ cert = '' }) => told.push(validityOf(cert).subject))
  place(authority.issue('after'))
  await certificates.readAgain()
  expect(told).toEqual(['CN=after'])
  expect(validityOf(certificates.current.cert ?? '').subject).toBe('CN=after')
  copyFileSync(authority.issue('other').key, files.key)
  await certificates.readAgain()
  expect(lines.at(-1)).toMatchObject({
    level: 40,
    setting: 'server.tls.key',
    msg: 'changed TLS files cannot be used, the ones before stay in use',
  })
  expect(validityOf(certificates.current.cert ?? '').subject).toBe('CN=after')
})
