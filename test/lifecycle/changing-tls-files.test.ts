import { copyFileSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { connect, createServer } from 'node:tls'
import { once } from 'node:events'
import { type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ChangingTlsFiles } from '../../src/lifecycle/changing-tls-files.js'
import { recordingLog } from '../support/silent-log.js'
import { tempDir } from '../support/temp-dir.js'
import { type IssuedFiles, TestAuthority } from '../support/test-authority.js'
import { until } from '../support/until.js'

let authority: TestAuthority
let first: IssuedFiles
let second: IssuedFiles

beforeAll(() => {
  authority = new TestAuthority()
  first = authority.issue('first')
  second = authority.issue('second')
})

afterAll(() => authority.remove())

function pairIn(dir: string, { cert, key }: IssuedFiles): IssuedFiles {
  const to = { cert: join(dir, 'tls.crt'), key: join(dir, 'tls.key') }
  copyFileSync(cert, to.cert)
  copyFileSync(key, to.key)
  return to
}

describe('ChangingTlsFiles', () => {
  it('reads files again when they change', async () => {
    const { log, lines } = recordingLog()
    const dir = tempDir()
    const files = new ChangingTlsFiles(pairIn(dir, first), 'server.tls', log)
    expect(files.current.cert).toBe(authority.text(first.cert))
    expect((await files.refresh()).cert).toBe(authority.text(first.cert))
    pairIn(dir, second)
    expect((await files.refresh()).cert).toBe(authority.text(second.cert))
    await files.refresh()
    expect(lines.map(({ msg }) => msg)).toEqual(['changed TLS files are in use'])
  })

  it('R73: keeps the pair before, and says so once, when the new one does not match', async () => {
    const { log, lines } = recordingLog()
    const dir = tempDir()
    const paths = pairIn(dir, first)
    const files = new ChangingTlsFiles(paths, 'server.tls', log)
    copyFileSync(second.cert, paths.cert)
    for (let looks = 0; looks < 4; looks += 1)
      expect((await files.refresh()).cert).toBe(authority.text(first.cert))
    expect(lines).toMatchObject([
      { setting: 'server.tls.key', reason: expect.stringMatching(/is not the key/) as string },
    ])
    copyFileSync(second.key, paths.key)
    expect((await files.refresh()).cert).toBe(authority.text(second.cert))
    expect(lines).toHaveLength(2)
  })

  it('says nothing of a pair whose second file comes a little later', async () => {
    const { log, lines } = recordingLog()
    const dir = tempDir()
    const paths = pairIn(dir, first)
    const files = new ChangingTlsFiles(paths, 'server.tls', log)
    copyFileSync(second.cert, paths.cert)
    await files.refresh()
    copyFileSync(second.key, paths.key)
    await files.refresh()
    expect(lines.map(({ msg }) => msg)).toEqual(['changed TLS files are in use'])
  })

  it('keeps what it has when the files go, and takes them when they come back', async () => {
    const { log, lines } = recordingLog()
    const dir = tempDir()
    const paths = pairIn(dir, first)
    const files = new ChangingTlsFiles(paths, 'server.tls', log)
    rmSync(paths.cert)
    for (let looks = 0; looks < 3; looks += 1)
      expect((await files.refresh()).cert).toBe(authority.text(first.cert))
    expect(lines).toMatchObject([{ reason: expect.stringMatching(/is not there/) as string }])
    pairIn(dir, second)
    expect((await files.refresh()).cert).toBe(authority.text(second.cert))
  })

  it('follows links that are swapped as Kubernetes does it', async () => {
    const dir = tempDir()
    const put = (name: string, pair: IssuedFiles) => {
      mkdirSync(join(dir, name))
      pairIn(join(dir, name), pair)
      symlinkSync(name, join(dir, 'next'))
      renameSync(join(dir, 'next'), join(dir, '..data'))
    }
    put('..1', first)
    symlinkSync('..data/tls.crt', join(dir, 'tls.crt'))
    symlinkSync('..data/tls.key', join(dir, 'tls.key'))
    const paths = { cert: join(dir, 'tls.crt'), key: join(dir, 'tls.key') }
    const files = new ChangingTlsFiles(paths, 'server.tls', recordingLog().log)
    put('..2', second)
    expect((await files.refresh()).cert).toBe(authority.text(second.cert))
  })

  it('looks by itself once started, and tells a server, which shows the new certificate from then on', async () => {
    const dir = tempDir()
    const files = new ChangingTlsFiles(pairIn(dir, first), 'server.tls', recordingLog().log, { everyMs: 20 })
    const server = createServer({ ...files.current }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => {
      files.close()
      server.close()
    })
    files.onChange((material) => server.setSecureContext({ ...material }))
    files.start()
    const { port } = server.address() as AddressInfo
    const shown = async () => {
      const socket = connect({ port, host: '127.0.0.1', ca: authority.text(authority.ca) })
      await once(socket, 'secureConnect')
      const { CN } = socket.getPeerCertificate().subject
      socket.destroy()
      return CN
    }
    expect(await shown()).toBe('first')
    pairIn(dir, second)
    await until('the new certificate', async () => (await shown()) === 'second')
  })

  it('does not begin with files that are at fault', () => {
    const paths = { cert: first.cert, key: second.key }
    expect(() => new ChangingTlsFiles(paths, 'server.tls', recordingLog().log)).toThrow(
      /server\.tls\.key: .* is not the key/,
    )
  })
})
