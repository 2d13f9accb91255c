import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { mainScript } from '../support/gantry-process.js'
import { descendants, processInfo } from '../support/processes.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const command = join(import.meta.dirname, '../../bin/gantry.mjs')

/** An environment in which no shell has named a program. */
const { _: __, ...unnamed } = process.env

/** Starts a service by a line of a shell, in which `$GANTRY` is the command and its arguments, and tells its process. */
async function started(
  shell: string,
  line: string,
  gantry: readonly string[],
  env: NodeJS.ProcessEnv = unnamed,
) {
  const dir = tempDir()
  const file = join(dir, 'pipeline.yaml')
  writeFileSync(
    file,
    `apiVersion: gantry/v1\nengines: 0\nmodelServer: { enabled: false }\nstore: { path: ${dir} }\nserver: { httpPort: 0, metricsPort: 0, grpcPort: 0 }\n`,
  )
  const words = [...gantry, 'serve', '-c', file, '--json'].map((word) => `'${word}'`).join(' ')
  const child = spawn(shell, ['-c', line.replace('$GANTRY', words)], {
    env: { ...env, LC_ALL: 'C' },
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const closed = once(child, 'close')
  onTestFinished(async () => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL')
    } catch {
      // It is gone already.
    }
    await closed
  })
  await until('the service', () => out.includes('httpUrl'), 20_000)
  const { httpUrl } = JSON.parse(out.slice(out.indexOf('{'))) as { httpUrl: string }
  const all = [processInfo(child.pid ?? 0), ...descendants(child.pid ?? 0)]
  const pid = all.find((info) => /^\S*node \S+ serve /.test(info?.command ?? ''))?.pid
  if (pid === undefined) throw new Error('no process of the service was found')
  // In a terminal of its own it is of another group.
  onTestFinished(() => {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It is gone already.
    }
  })
  return { pid, httpUrl, closed }
}

describe('a service that began with SIGHUP ignored', () => {
  it.each([
    ['nohup, by bash', 'bash', 'nohup $GANTRY', [process.execPath, mainScript]],
    ['nohup in the background, by bash', 'bash', 'nohup $GANTRY & wait', [process.execPath, mainScript]],
    [
      'trap, by the shell that waits for it',
      'sh',
      "trap '' HUP; $GANTRY; exit $?",
      [process.execPath, mainScript],
    ],
    ['nohup and the command gantry', 'sh', 'nohup $GANTRY', [command]],
    ['trap and the command gantry', 'sh', "trap '' HUP; exec $GANTRY", [command]],
  ])(
    'R81: goes on after SIGHUP, and ends on SIGTERM: %s',
    { timeout: 60_000 },
    async (_, shell, line, gantry) => {
      const service = await started(shell, line, gantry)
      process.kill(service.pid, 'SIGHUP')
      process.kill(service.pid, 'SIGHUP')
      expect((await fetch(`${service.httpUrl}/healthz`)).status).toBe(200)
      process.kill(service.pid, 'SIGTERM')
      expect(await service.closed).toEqual([0, null])
    },
  )

  it(
    'R81: is known by the standard input that nohup gives in the place of a terminal',
    { timeout: 60_000 },
    async () => {
      const terminal = (text: string) => `script -qefc "${text.replaceAll('"', '\\"')}" /dev/null`
      const service = await started('sh', terminal('env -u _ nohup $GANTRY 2>&1 | cat'), [
        process.execPath,
        mainScript,
      ])
      process.kill(service.pid, 'SIGHUP')
      process.kill(service.pid, 'SIGHUP')
      expect((await fetch(`${service.httpUrl}/healthz`)).status).toBe(200)
    },
  )

  it(
    'R81: ends in good order on SIGHUP where it was not ignored, also by a link to the command',
    { timeout: 60_000 },
    async () => {
      const bin = join(tempDir(), 'bin')
      mkdirSync(bin)
      symlinkSync(command, join(bin, 'gantry'))
      for (const gantry of [[process.execPath, mainScript], [join(bin, 'gantry')]]) {
        const service = await started('sh', 'exec $GANTRY', gantry)
        process.kill(service.pid, 'SIGHUP')
        expect(await service.closed).toEqual([0, null])
      }
    },
  )
})
