import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { alive, descendants, type ProcessInfo } from '../support/processes.js'
import { mainScript } from '../support/gantry-process.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const clip = join(import.meta.dirname, '../../pipelines/demo/clips/yard.mp4')
/** A process of a number space of its own, in which the next is the first. It ends with what is in it. */
const alone = [
  'unshare',
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
  ...['--pid', '--fork', '--kill-child', '--mount-proc'],
]

/** The service's processes by what stands in their command lines. */
const below = (pid: number, words: RegExp): ProcessInfo[] =>
  descendants(pid).filter(({ command }) => words.test(command))

it(
  'R80: as the first process of a container leaves no zombie when engines die, and ends as it is told',
  { timeout: 180_000 },
  async () => {
    await using service = await TestService.start({
      under: alone,
      pipeline: {
        mediaRoot: dirname(clip),
        cameras: ['a', 'b'].map((id) => ({ id, url: clip, sampleFps: 2 })),
      },
    })
    const engines = () => below(service.pid, /engine\/main\.js/)
    const zombies = () => descendants(service.pid).filter(({ state }) => state === 'Z')
    for (let death = 1; death <= 3; death += 1) {
      const before = await until(
        'an engine with its decoders',
        () => {
          const [engine] = engines()
          return engine && below(engine.pid, /^\S*ffmpeg /).length >= 2 ? engine : undefined
        },
        60_000,
      )
      process.kill(before.pid, 'SIGKILL')
      await until('another engine', () => engines().some(({ pid }) => pid !== before.pid), 60_000)
    }
    await until('no zombie', () => zombies().length === 0)
    const [init] = descendants(service.pid).filter(({ parent }) => parent === service.pid)
    if (init === undefined) throw new Error('the service has no first process')
    process.kill(init.pid, 'SIGTERM')
    expect(await service.exited()).toBe(0)
  },
)

it('R80: hears Ctrl-C of a terminal once, and tells its exit code', { timeout: 60_000 }, async () => {
  const dir = tempDir()
  const file = join(dir, 'pipeline.yaml')
  writeFileSync(
    file,
    `apiVersion: gantry/v1\nengines: 0\nmodelServer: { enabled: false }\nstore: { path: ${dir} }\nserver: { httpPort: 0, metricsPort: 0, grpcPort: 0 }\n`,
  )
  const words = [...alone, process.execPath, mainScript, 'serve', '-c', file]
    .map((word) => `'${word}'`)
    .join(' ')
  const terminal = spawn('script', ['-qefc', words, '/dev/null'], { stdio: ['pipe', 'pipe', 'ignore'] })
  let text = ''
  terminal.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await until('the service', () => text.includes('is running'), 30_000)
  terminal.stdin.write('\u0003')
  const [code] = (await once(terminal, 'exit')) as [number]
  expect(text).toContain('stopped')
  expect(code).toBe(130)
})

it.each([
  ['a command that is not there', ['nope'], 2],
  ['the version', ['--version'], 0],
])('R80: ends with the exit code of %s', async (_, args, code) => {
  const child = spawn(alone[0] ?? '', [...alone.slice(1), process.execPath, mainScript, ...args], {
    stdio: 'ignore',
  })
  const [got] = (await once(child, 'exit')) as [number]
  expect(got).toBe(code)
  expect(alive(child.pid ?? 0)).toBe(false)
})
