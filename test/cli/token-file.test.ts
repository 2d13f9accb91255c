import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../../src/cli/program.js'
import { loadPipeline } from '../../src/config/load.js'
import { fakeTerminal } from '../support/fake-terminal.js'
import { mainScript } from '../support/gantry-process.js'
import { otherUserWorks, thrownForOther } from '../support/other-user.js'
import { tempDir } from '../support/temp-dir.js'

async function gantry(...args: string[]) {
  const terminal = fakeTerminal()
  const code = await run(['token', ...args], terminal)
  return { code, stdout: terminal.stdout(), stderr: terminal.stderr() }
}
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

describe('gantry token', () => {
  it('S31: makes a token that only its owner reads, once, and says how to read it', async () => {
    const file = join(tempDir(), 'new/token')
    expect(await gantry(file)).toMatchObject({ code: 0, stdout: `${file}: made; read it: cat ${file}\n` })
    const token = readFileSync(file, 'utf8')
    expect(token).toMatch(/^[0-9a-f]{48}\n$/)
    expect(modeOf(file)).toBe('600')
    expect(await gantry(file)).toMatchObject({
      code: 0,
      stdout: `${file}: kept as it was; read it: cat ${file}\n`,
    })
    expect(readFileSync(file, 'utf8')).toBe(token)
    expect(readdirSync(join(file, '..'))).toEqual(['token'])
    const { config } = loadPipeline(undefined, { env: { GANTRY__SERVER__TOKEN_FILE: file } })
    expect(config.server.token).toBe(token.trim())
  })

  it('S31: tells nobody the token itself', async () => {
    const file = join(tempDir(), 'token')
    const { stdout, stderr } = await gantry(file, '--json')
    expect(JSON.parse(stdout)).toEqual({ file, made: true })
    expect(stdout + stderr).not.toContain(readFileSync(file, 'utf8').trim())
  })

  it('gives others the rights that are asked for, whatever the umask is', async () => {
    const file = join(tempDir(), 'token')
    const before = process.umask(0o077)
    try {
      const { stdout } = await gantry(file, '--mode', '644', '--read-by', 'docker compose exec gantry cat /x')
      expect(stdout).toContain('read it: docker compose exec gantry cat /x\n')
    } finally {
      process.umask(before)
    }
    expect(modeOf(file)).toBe('644')
  })

  it.each(['666', '602', '044', '9', 'rw', '0o644'])('refuses the rights %s', async (mode) => {
    const file = join(tempDir(), 'token')
    expect((await gantry(file, '--mode', mode)).code).toBe(2)
    expect(readdirSync(join(file, '..'))).toEqual([])
  })

  it.each([
    ['is empty', ''],
    ['is empty', ' \n'],
    ['holds a token of 5 characters, which is too short', 'short\n'],
    ['cannot hold a token: it is UTF-16', Buffer.from('\ufefftoken-of-many-letters', 'utf16le')],
  ])('R94: leaves alone a file that %s, and says what to do', async (problem, content) => {
    const file = join(tempDir(), 'token')
    writeFileSync(file, content)
    const { code, stdout, stderr } = await gantry(file)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`${file} ${problem}`)
    expect(stderr).toContain('or remove it: one is made then')
    expect(readFileSync(file)).toEqual(Buffer.from(content))
  })

  it('R94: says so where there is a folder of that name', async () => {
    const file = join(tempDir(), 'token')
    mkdirSync(file)
    expect((await gantry(file)).stderr).toContain(`${file} cannot hold a token: EISDIR`)
  })

  it.skipIf(!otherUserWorks)('R94: says so where this user may not write', () => {
    const folder = tempDir()
    chmodSync(folder, 0o755)
    expect(
      thrownForOther('cli/token-file.js', `keptToken(${JSON.stringify(join(folder, 'token'))}, 0o600)`),
    ).toEqual({
      code: 'GANTRY_ENVIRONMENT',
      message: expect.stringContaining('no permission') as string,
    })
  })

  it('R94: of several that make it at once all have the same', async () => {
    const file = join(tempDir(), 'token')
    const children = Array.from({ length: 6 }, () =>
      spawn(process.execPath, [mainScript, 'token', file, '--json'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    )
    const answers = await Promise.all(
      children.map(async (child) => {
        let text = ''
        child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
        const [code] = (await once(child, 'close')) as [number]
        expect(code).toBe(0)
        return (JSON.parse(text) as { made: boolean }).made
      }),
    )
    expect(answers.filter(Boolean)).toEqual([true])
    expect(readdirSync(join(file, '..'))).toEqual(['token'])
  }, 60_000)
})
