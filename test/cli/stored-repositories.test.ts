import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { run } from '../../src/cli/program.js'
import { fakeTerminal } from '../support/fake-terminal.js'
import { GantryProcess } from '../support/gantry-process.js'
import { echoOnnx } from '../support/model-repository.js'
import { type S3Server, startS3 } from '../support/s3-server.js'
import { tlsFront } from '../support/tls-front.js'
import { tempDir } from '../support/temp-dir.js'

/** A store with one model, and a pipeline file that names it. */
async function plant(): Promise<{ server: S3Server; file: (repository?: string) => string }> {
  const server = await startS3('plant')
  await server.put('models/echo/1/model.onnx', echoOnnx('float32', ['batch', 4]))
  const dir = tempDir()
  const file = (repository = 's3://plant/models') => {
    const path = join(dir, 'pipeline.yaml')
    const models = { repository, control: 'none' }
    writeFileSync(path, stringify({ apiVersion: 'gantry/v1', name: 'plant', engines: 0, models }))
    return path
  }
  return { server, file }
}

async function gantry(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const terminal = fakeTerminal(env)
  const code = await run(args, terminal)
  return { code, stdout: terminal.stdout(), stderr: terminal.stderr() }
}

describe('commands with a repository in an object store', () => {
  it('fetch it, and go on with what was fetched while the store is away', async () => {
    const { server, file } = await plant()
    const { env } = server
    const untouched = await gantry(env, 'check', '--offline', '-c', file())
    expect([untouched.code, untouched.stdout]).toEqual([
      0,
      expect.stringMatching(/skipped +nothing of s3:\/\/plant\/models was fetched yet/),
    ])
    const listed = await gantry(env, 'models', 'list', '-c', file())
    expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining('echo')])
    const checked = await gantry(env, 'check', '-c', file())
    expect([checked.code, checked.stdout]).toEqual([
      0,
      expect.stringMatching(/repository s3:\/\/plant\/models +ok +fetched/),
    ])
    expect(checked.stdout).toMatch(/1 of 1 can be loaded: echo/)
    await server.close()
    const away = await gantry(env, 'models', 'inspect', 'echo', '-c', file())
    expect([away.code, away.stderr]).toEqual([
      0,
      expect.stringMatching(/^note: .* is read as it was fetched before/),
    ])
    const warned = await gantry(env, 'check', '-c', file())
    expect([warned.code, warned.stdout]).toEqual([
      0,
      expect.stringMatching(/repository s3:\/\/plant\/models +warning +model repository .* fetched before/),
    ])
    const offline = await gantry(env, 'check', '--offline', '-c', file())
    expect([offline.code, offline.stdout]).toEqual([0, expect.stringMatching(/1 of 1 can be loaded: echo/)])
  }, 120_000)

  it('R183: say what is wrong with it, and what to do', async () => {
    const { server, file } = await plant()
    const { env } = server
    const checked = await gantry(env, 'check', '-c', file('s3://other/models'))
    expect(checked.code).toBe(2)
    expect(checked.stdout).toMatch(/failed +s3:\/\/other\/models\/ cannot be read: NoSuchBucket/)
    expect(checked.stdout).toMatch(/fix: See that the bucket is spelled right/)
    const listed = await gantry(env, 'models', 'list', '-c', file('s3://plant/nothing'))
    expect([listed.code, listed.stderr]).toEqual([
      1,
      expect.stringContaining('s3://plant/nothing/ holds no models'),
    ])
    const stranger = await gantry(
      { ...env, AWS_SECRET_ACCESS_KEY: 'wrong' },
      'models',
      'list',
      '-c',
      file('s3://plant/models'),
    )
    expect(stranger.stderr).toMatch(/s3:\/\/plant\/models\/ cannot be read: SignatureDoesNotMatch/)
  }, 120_000)

  it('write nothing into it', async () => {
    const { server, file } = await plant()
    const split = await gantry(server.env, 'models', 'split', 'echo', '--stages', '2', '-c', file())
    expect([split.code, split.stderr]).toEqual([
      2,
      expect.stringMatching(/"echo" is of an object store[^]*Add --out FOLDER/),
    ])
    const named = await gantry(server.env, 'models', 'list', '-r', 's3://plant/models')
    expect([named.code, named.stderr]).toEqual([
      2,
      expect.stringMatching(/takes a folder[^]*models.repository/),
    ])
  }, 60_000)

  it('reach it by TLS, with a certificate authority of the user, and say that one is not trusted', async () => {
    const { server, file } = await plant()
    const { port, files } = await tlsFront(server.port)
    const { AWS_ENDPOINT_URL: _, ...login } = server.env
    const args = ['models', 'list', '-c', file(`s3://https://127.0.0.1:${port}/plant/models`)]
    const wary = await gantry(login, ...args)
    expect([wary.code, wary.stderr]).toEqual([
      1,
      expect.stringMatching(/cannot be reached: .*self-signed certificate[^]*NODE_EXTRA_CA_CERTS/),
    ])
    const trusting = new GantryProcess(args, {
      env: { ...login, NODE_EXTRA_CA_CERTS: files.certificateFile },
    })
    expect([await trusting.ended(), trusting.stderr]).toEqual([0, ''])
    expect(trusting.stdout).toContain('echo')
  }, 60_000)
})
