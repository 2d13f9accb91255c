import { cpSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { CameraView } from '../../src/cameras/camera-view.js'
import { dockClip } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const fixtures = join(import.meta.dirname, '../fixtures/stored')
const releases = readdirSync(fixtures, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)

type Stored = Readonly<{
  cameras: readonly (Readonly<Record<string, unknown>> & { id: string; url: string })[]
}>
const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

it.each(releases)(
  'R135: the service goes on with what the release of %s stored, and with cursors of its clients',
  { timeout: 300_000 },
  async (release) => {
    const data = join(tempDir(), 'data')
    cpSync(join(fixtures, release), data, { recursive: true })
    const stored = readJson(join(data, 'cameras.json')) as Stored
    const verdicts = readJson(join(data, 'model-probes.json')) as Readonly<Record<string, string>>
    const cursors = readJson(join(data, 'cursors.json')) as Readonly<{ stream: string; detections: string }>
    const service = await TestService.start({
      pipeline: {
        store: { path: data },
        mediaRoot: dirname(dockClip),
        modelServer: { enabled: true },
        cameras: [{ id: 'written', url: 'push:' }],
      },
    })
    onTestFinished(() => service[Symbol.asyncDispose]())

    const { items } = await service.json<{ items: readonly CameraView[] }>('/api/v1/cameras')
    expect(items.map(({ id }) => id).sort()).toEqual(
      ['written', ...stored.cameras.map(({ id }) => id)].sort(),
    )
    for (const { url: _, id, ...settings } of stored.cameras)
      expect(items.find((item) => item.id === id)?.config, id).toMatchObject(settings)
    await service.cameraIs('film', 'live', 60_000)

    // Of another run: nobody knows how many messages are missing, and what follows is from now on.
    const stream = await service.stream({ resumeAfter: cursors.stream })
    onTestFinished(() => stream.close())
    await stream.detections('film')
    expect(stream.messages.filter(({ type }) => type === 'gap')).toEqual([
      { type: 'gap', dropped: 0, reason: 'resume_expired' },
    ])
    const older = await service.fetch(`/api/v1/detections?cursor=${cursors.detections}`)
    // It names a result, and older ones follow: of a cache in memory they are gone.
    expect({ status: older.status, body: await older.json() }).toEqual({ status: 200, body: { items: [] } })

    // What is written from now on keeps what is there, logins too.
    await service.send('POST', '/api/v1/cameras', { id: 'new', url: 'push:', persist: true })
    const now = readJson(join(data, 'cameras.json')) as Stored
    expect(now.cameras.map(({ id, url }) => ({ id, url }))).toEqual([
      ...stored.cameras.map(({ id, url }) => ({ id, url })),
      { id: 'new', url: 'push:' },
    ])
    expect(statSync(join(data, 'cameras.json')).mode & 0o777).toBe(0o600)
    await until(
      'a model of /v2',
      async () => (await service.fetch('/v2/models/ppe_detect_int8/ready')).ok,
      150_000,
    )
    const probes = readJson(join(data, 'model-probes.json')) as Readonly<Record<string, string>>
    expect(probes).toMatchObject(verdicts)
    expect(Object.keys(probes)).toHaveLength(Object.keys(verdicts).length + 1)
  },
)
