import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runOnPipeline } from '../support/pipeline-command.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const clips = join(import.meta.dirname, '../../pipelines/demo/clips')

it(
  'R82: works with a temporary folder whose path is longer than those of sockets',
  { timeout: 120_000 },
  async () => {
    const long = join(tempDir(), 'x'.repeat(98))
    mkdirSync(long)
    const before = readdirSync('/tmp').filter((name) => name.startsWith('gantry-run-'))
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
      await service.end()
    }
    expect(readdirSync(long)).toEqual([])
    const left = readdirSync('/tmp').filter((name) => name.startsWith('gantry-run-'))
    expect(left.filter((name) => !before.includes(name))).toEqual([])
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
