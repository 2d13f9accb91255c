import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { GantryProcess, freely, mainScript, startScript } from '../support/gantry-process.js'
import { alive, descendants } from '../support/processes.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const models = join(import.meta.dirname, '../../models')

const running: GantryProcess[] = []
afterEach(() => Promise.all(running.splice(0).map((gantry) => gantry.kill())))

function launch(args: readonly string[], script?: string): GantryProcess {
  const gantry = new GantryProcess(args, script === undefined ? {} : { script })
  running.push(gantry)
  return gantry
}

const demo = () => launch(['demo', '--cameras', '1', ...freely(tempDir())])

describe('gantry demo', () => {
  it('shows people on the bundled footage', { timeout: 90_000 }, async () => {
    const url = await demo().httpUrl()
    const labels = await until(
      'a detection',
      async () => {
        const page = (await (await fetch(`${url}/api/v1/detections?limit=50`)).json()) as {
          items: { detections: { label: string }[] }[]
        }
        return page.items.flatMap(({ detections }) => detections.map(({ label }) => label)).includes('person')
      },
      60_000,
      200,
    )
    expect(labels).toBe(true)
  })

  it.each([
    ['Ctrl-C', 'SIGINT', 130],
    ['SIGTERM', 'SIGTERM', 0],
  ] as const)('ends with everything it started on %s', { timeout: 90_000 }, async (_, signal, code) => {
    const gantry = demo()
    const url = await gantry.httpUrl()
    await until('readiness', async () => (await fetch(`${url}/readyz`)).ok, 30_000)
    const started = descendants(gantry.pid).map(({ pid }) => pid)
    expect(started.length).toBeGreaterThan(0)
    process.kill(signal === 'SIGINT' ? -gantry.pid : gantry.pid, signal)
    expect(await gantry.ended()).toBe(code)
    await until('its children to be gone', () => !started.some(alive), 2_000)
    expect(gantry.stderr).not.toContain('restarting')
  })
})

describe('npm start, where everything is there', () => {
  it('shows the page and four cameras with people, and ends on SIGTERM', { timeout: 90_000 }, async () => {
    const gantry = launch(freely(tempDir()), startScript)
    const url = await gantry.httpUrl()
    expect(await (await fetch(url)).text()).toContain('<!doctype html>')
    await until('readiness', async () => (await fetch(`${url}/readyz`)).ok, 30_000)
    const cameras = (await (await fetch(`${url}/api/v1/cameras`)).json()) as {
      items: { config: { id: string } }[]
    }
    expect(cameras.items).toHaveLength(4)
    for (const { config } of cameras.items)
      await until(
        `people on ${config.id}`,
        async () =>
          (await (await fetch(`${url}/api/v1/cameras/${config.id}/latest`)).text()).includes('"person"'),
        60_000,
        200,
      )
    gantry.child.kill('SIGTERM')
    expect(await gantry.ended()).toBe(0)
    expect(gantry.stderr).not.toContain('building')
  })
})

describe('gantry serve', () => {
  const free = 'server: { httpPort: 0, metricsPort: 0, grpcPort: 0 }'
  const serve = (yaml: string, ...args: string[]) => {
    const path = join(tempDir(), 'pipeline.yaml')
    writeFileSync(path, `apiVersion: gantry/v1\nmodels: { repository: ${models} }\n${yaml}`)
    return launch(['serve', '-c', path, ...args])
  }

  it.each([
    ['a model that is not there', `${free}\nensemble: nope`, 2, 'GANTRY_MODEL_NOT_FOUND'],
    [
      'a public address without a token',
      'server: { host: 0.0.0.0, httpPort: 0, metricsPort: 0 }',
      2,
      'GANTRY_PUBLIC_BIND',
    ],
    [
      'a camera URL that is not opened',
      `${free}\ncameras: [{ id: a, url: "gopher://h" }]`,
      2,
      'GANTRY_CONFIG',
    ],
    [
      'a camera whose file is not there',
      `${free}\ncameras: [{ id: a, url: "none.mp4" }]`,
      2,
      'GANTRY_CAMERA_URL',
    ],
  ])('refuses %s in two lines', { timeout: 60_000 }, async (_, yaml, code, error) => {
    const gantry = serve(yaml)
    expect(await gantry.ended()).toBe(code)
    const told = gantry.stderr.split('\n').filter((line) => !line.startsWith('{') && line !== '')
    expect(told).toHaveLength(2)
    expect(told[0]).toContain(`error ${error}: `)
    expect(told[1]).toMatch(/^hint: /)
  })

  it('names the port that is taken', { timeout: 60_000 }, async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const gantry = serve(`server: { httpPort: ${port}, metricsPort: 0, grpcPort: 0 }`)
    expect(await gantry.ended()).toBe(1)
    expect(gantry.stderr).toMatch(new RegExp(`error GANTRY_PORT_IN_USE: .*${port}`))
    other.close()
  })

  it('ends at once on a second signal', { timeout: 60_000 }, async () => {
    const gantry = serve(free, '--json')
    await gantry.httpUrl()
    process.kill(gantry.pid, 'SIGSTOP')
    process.kill(gantry.pid, 'SIGHUP')
    process.kill(gantry.pid, 'SIGTERM')
    process.kill(gantry.pid, 'SIGCONT')
    // Either may be the second; a stop in good order would end with 0.
    expect([129, 143]).toContain(await gantry.ended())
  })
})

describe('a pipe that is closed early', () => {
  it('is no failure', async () => {
    const shell = spawn('bash', [
      '-o',
      'pipefail',
      '-c',
      `"${process.execPath}" "${mainScript}" models list --json | head -n 1`,
    ])
    const [code] = (await once(shell, 'close')) as [number]
    expect(code).toBe(0)
  })
})
