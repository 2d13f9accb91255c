import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import {
  HandContainer,
  handContainerMissing,
  type HandMount,
  imageSettings,
} from '../support/hand-container.js'
import { until } from '../support/until.js'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

type Service = Readonly<{
  command: readonly string[]
  environment?: Readonly<Record<string, string>>
  volumes: readonly string[]
  tmpfs?: readonly string[]
  stop_grace_period?: string
}>
const { services } = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, Service>
}
const image = imageSettings(read('Dockerfile'), 'cpu')

const missing = handContainerMissing()
if (missing !== undefined) process.stderr.write(`\nSKIPPED: ${missing}: what Compose starts is not started\n`)

describe.skipIf(missing !== undefined)('what Compose starts, with its rights', () => {
  let volumes = ''
  const running: HandContainer[] = []
  beforeAll(() => {
    volumes = mkdtempSync(join(tmpdir(), 'gantry-volumes-'))
    chmodSync(volumes, 0o755)
    // A new volume takes its owner from the image.
    const [uid = 0, gid = 0] = image.user.split(':').map(Number)
    for (const name of ['gantry-data', 'gantry-token']) {
      mkdirSync(join(volumes, name))
      chownSync(join(volumes, name), uid, gid)
    }
  })
  afterAll(async () => {
    await Promise.all(running.map((container) => container.remove()))
    rmSync(volumes, { recursive: true, force: true })
  })

  function start(name: string): HandContainer {
    const { command, environment = {}, volumes: mounts, tmpfs = [] } = services[name]!
    const container = HandContainer.start({
      image,
      command,
      env: environment,
      mounts: mounts.map(mountOf),
      tmpfs,
    })
    running.push(container)
    return container
  }

  function mountOf(text: string): HandMount {
    const [from = '', at = '', mode] = text.split(':')
    return {
      from: from.startsWith('.') ? join(root, from) : join(volumes, from),
      at,
      readOnly: mode === 'ro',
    }
  }

  it('R94: makes the token at the first start alone, and says how to read it', async () => {
    const first = start('token')
    expect(await first.ended(), first.output).toBe(0)
    expect(first.output).toContain('docker compose run --rm --entrypoint cat token /run/gantry/token')
    const file = join(volumes, 'gantry-token/token')
    const token = readFileSync(file, 'utf8')
    expect(first.output).not.toContain(token.trim())
    expect(statSync(file).mode & 0o777).toBe(0o644)
    const second = start('token')
    expect(await second.ended(), second.output).toBe(0)
    expect(readFileSync(file, 'utf8')).toBe(token)
  }, 60_000)

  it('R161: is healthy without a neighbour, on a root that nobody may write, and ends within its grace', async () => {
    expect(await start('token').ended()).toBe(0)
    const gantry = start('gantry')
    const health = async () => (await gantry.exec(image.health)).code === 0
    await until('health', health, 120_000, 500).catch((error: unknown) => {
      throw new Error(gantry.output, { cause: error })
    })
    const ask = `const headers = { authorization: 'Bearer ' + require('fs').readFileSync('/run/gantry/token', 'utf8').trim() }
      const get = (url, options) => fetch(url, options).then((answer) => answer.status, String)
      Promise.all([
        get('http://127.0.0.1:8000/api/v1/cameras'),
        get('http://127.0.0.1:8000/api/v1/cameras', { headers }),
        get('http://127.0.0.1:8002/metrics', { headers }),
        get('http://127.0.0.1:8000/'),
      ]).then((all) => console.log(JSON.stringify(all)))`
    const answers = await gantry.exec(['node', '-e', ask])
    expect(JSON.parse(answers.output)).toEqual([401, 200, 200, 200])
    const written = await gantry.exec([
      'sh',
      '-c',
      'touch /app/a; touch /run/gantry/a; touch /a; touch /data/a /tmp/a && echo last',
    ])
    expect(written.output.match(/Read-only file system/g)).toHaveLength(3)
    expect(written.output).toContain('last')

    const seconds = Number(/^(\d+)s$/.exec(services['gantry']?.stop_grace_period ?? '')?.[1])
    const beganMs = performance.now()
    await gantry.kill('SIGTERM')
    expect(await gantry.ended(), gantry.output).toBe(0)
    expect(performance.now() - beganMs).toBeLessThan(seconds * 1_000)
  }, 240_000)
})

describe.skipIf(missing !== undefined)('what the systemd unit starts, with its rights', () => {
  const unit = read('deploy/systemd/gantry.service')
  const all = (name: string) =>
    [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value)
  const one = (name: string) => all(name)[0] ?? ''
  let folder = ''
  let service: HandContainer | undefined
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'gantry-unit-'))
    chmodSync(folder, 0o755)
  })
  afterAll(async () => {
    await service?.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  it('R162: runs with its own folder alone, a token as a credential, and ends within its time', async () => {
    const [state, credentials, programs] = ['state', 'credentials', 'programs'].map((name) =>
      join(folder, name),
    )
    for (const path of [state, credentials, programs]) mkdirSync(path!)
    // As `npm install --global` leaves it, and `gantry token` of root, which systemd hands over.
    symlinkSync('/app/bin/gantry.mjs', join(programs!, 'gantry'))
    const token = join(credentials!, 'token')
    const made = spawnSync(process.execPath, [join(root, 'dist/cli/main.js'), 'token', token], {
      encoding: 'utf8',
    })
    expect(made.status, made.stderr).toBe(0)
    for (const path of [state!, credentials!, token]) chownSync(path, 10_001, 10_001)
    const pipeline = join(folder, 'pipeline.yaml')
    const [, text = ''] = /```yaml\n(# pipeline\.yaml\n.*?)```/s.exec(read('docs/installing.md')) ?? []
    const here = text.replace(/repository: \S+/, 'repository: /app/models')
    writeFileSync(pipeline, `${here}server: { host: 0.0.0.0 }\n`)
    const [, dropIn = ''] = /```ini\n(.*?)```/s.exec(read('docs/installing.md')) ?? []
    const given = /^Environment=(\w+)=%d\/token$/m.exec(dropIn)?.[1] ?? ''
    const place = '/run/credentials/gantry.service'
    service = HandContainer.start({
      image: {
        entrypoint: one('ExecStart').split(' '),
        health: [],
        user: '10001:10001',
        workdir: one('WorkingDirectory'),
        env: one('Environment').split(' '),
      },
      command: [],
      // The second is of /etc/gantry/environment.
      env: { [given]: `${place}/token`, DOCK_PASSWORD: 'canary' },
      mounts: [
        { from: state!, at: `/var/lib/${one('StateDirectory')}`, readOnly: false },
        { from: pipeline, at: '/etc/gantry/pipeline.yaml', readOnly: true },
        { from: credentials!, at: place, readOnly: true },
        { from: programs!, at: '/usr/local/sbin', readOnly: true },
      ],
      tmpfs: ['/tmp'],
    })
    const running = service
    const health = async () => (await running.exec(['gantry', 'health'])).code === 0
    await until('health', health, 120_000, 500).catch((error: unknown) => {
      throw new Error(running.output, { cause: error })
    })
    const beganMs = performance.now()
    await running.kill('SIGTERM')
    expect(await running.ended(), running.output).toBe(0)
    expect(performance.now() - beganMs).toBeLessThan(Number(one('TimeoutStopSec')) * 1_000)
    expect(running.output).not.toContain('canary')
    expect(running.output).not.toMatch(/cannot be written|without being stored/)
    expect(readdirSync(state!)).toContain('records.sqlite')
  }, 240_000)
})
