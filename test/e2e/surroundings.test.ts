import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runOnPipeline } from '../support/pipeline-command.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const clips = join(import.meta.dirname, '../../pipelines/demo/clips')

/** Other services of this machine have theirs beside them. */
function foldersOf(pid: number): readonly string[] {
  return readdirSync('/tmp').filter((name) => {
    if (!name.startsWith('gantry-run-')) return false
    try {
      return readFileSync(join('/tmp', name, 'owner'), 'utf8').startsWith(`${pid} `)
    } catch {
      return false
    }
  })
}

it(
  'R82: works with a temporary folder whose path is longer than those of sockets',
  { timeout: 120_000 },
  async () => {
    const long = join(tempDir(), 'x'.repeat(98))
    mkdirSync(long)
    let pid = 0
    {
      await using service = await TestService.start({
        env: { TMPDIR: long },
        pipeline: {
          mediaRoot: clips,
          models: { repository: join(clips, '../../../models'), control: 'none' },
          modelServer: { enabled: true },
          cameras: [{ id: 'a', url: 'yard.mp4', sampleFps: 2 }],
        },
      })
      await service.cameraIs('a', 'live', 30_000)
      await until('the model server', async () => (await service.fetch('/v2/health/live')).ok, 30_000)
      expect((await service.readiness()).modelServer).toMatchObject({ state: 'ready', restarts: 0 })
      pid = service.pid
      // Sockets of the service's health and of the model server.
      expect(foldersOf(pid)).toHaveLength(2)
      await service.end()
    }
    expect(readdirSync(long)).toEqual([])
    expect(foldersOf(pid)).toEqual([])
  },
)

it(
  'R82: refuses a temporary folder that is not there in two lines, and check finds it',
  { timeout: 60_000 },
  () => {
    const dir = tempDir()
    const none = join(dir, 'none')
    for (const [command = '', code] of [
      ['serve', 1],
      ['check', 2],
    ] as const) {
      const { status, stdout, stderr } = runOnPipeline(dir, { engines: 0 }, [command, '--json'], {
        TMPDIR: none,
      })
      expect(stdout + stderr).toContain(
        `the temporary folder ${none} (TMPDIR) cannot be used: it is not there`,
      )
      expect(status).toBe(code)
    }
  },
)

it(
  'R82: says at the start by its setting that the store cannot be written, and serves',
  { timeout: 60_000 },
  async () => {
    await using service = await TestService.start({
      startedWhen: 'answering',
      pipeline: { engines: 0, store: { path: '/proc/none' } },
    })
    expect(service.stderr).toContain('"setting":"store.path"')
    expect(service.stderr.match(/store\.path cannot be written/g)).toHaveLength(1)
  },
)
