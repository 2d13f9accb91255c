import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Finding } from '../../src/cli/findings.js'
import type { ReadinessView } from '../../src/api/readiness-schemas.js'
import { installationWithBrokenCuda, installationWithFullCuda } from '../support/cuda-installation.js'
import { freePort } from '../support/free-port.js'
import { freely, GantryProcess } from '../support/gantry-process.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const missing = 'libcublasLt.so.99 is missing: install CUDA 99, or name the folder in LD_LIBRARY_PATH'
const reason = `cuda: ${missing}`
const full = 'cuda: GPU 0 is out of memory'

/** A pipeline with one camera that is pushed to, and a detector of a few nodes. */
function pipeline(more: object = {}): string {
  const dir = tempDir()
  addModel(dir, 'red', { onnx: redDetector('uint8-nhwc'), config: 'max_batch_size: 4' })
  const file = join(dir, 'pipeline.json')
  const content = {
    ensemble: 'red',
    models: { repository: dir, control: 'none' },
    cameras: [{ id: 'a', url: 'push:' }],
    ...more,
  }
  writeFileSync(file, JSON.stringify({ apiVersion: 'gantry/v1', name: 'broken', ...content }))
  return file
}

function findings(main: string, args: readonly string[]): Finding[] {
  const { stdout } = spawnSync(process.execPath, [main, ...args, '--json'], { encoding: 'utf8' })
  return (JSON.parse(stdout) as { findings: Finding[] }).findings
}

async function readinessAt(url: string) {
  const response = await fetch(`${url}/readyz`)
  return { status: response.status, ...((await response.json()) as ReadinessView) }
}

async function metricsAt(url: string): Promise<string> {
  return (await fetch(`${url}/metrics`)).text()
}

/** Labels and values of the metric, sorted. */
async function providersAt(url: string): Promise<string[]> {
  const name = 'gantry_execution_provider'
  const lines = (await metricsAt(url)).split('\n').filter((line) => line.startsWith(`${name}{`))
  return lines.map((line) => line.slice(name.length)).sort()
}

/** A picture of no colour for the camera, accepted. */
async function push(url: string): Promise<void> {
  const image = await sharp({ create: { width: 64, height: 64, channels: 3, background: '#808080' } })
    .jpeg()
    .toBuffer()
  await until('a picture is taken', async () => {
    const response = await fetch(`${url}/api/v1/cameras/a/frames`, {
      method: 'POST',
      headers: { 'content-type': 'image/jpeg' },
      body: new Uint8Array(image),
    })
    return response.ok
  })
}

describe.skipIf(process.platform !== 'linux')('R25: a provider that is installed and fails', () => {
  it(
    'is a warning and a reason in /readyz; the work is done on the next one',
    { timeout: 90_000 },
    async () => {
      const service = new GantryProcess(['serve', '-c', pipeline(), ...freely(tempDir())], {
        script: installationWithBrokenCuda(),
      })
      onTestFinished(() => service.kill())
      const url = await service.httpUrl()
      await until(
        'models of clients are loaded',
        async () => (await readinessAt(url)).modelServer?.models.ready === 1,
        60_000,
      )
      const { status, ready, reasons, engines, modelServer } = await readinessAt(url)
      expect({ status, ready }).toEqual({ status: 200, ready: true })
      expect(reasons).toEqual([
        `engine 0 runs on cpu: ${reason}`,
        `models of clients run elsewhere, or not at all: ${reason}`,
      ])
      expect(engines[0]?.detector).toMatchObject({ provider: 'cpu', providerFailures: [reason] })
      expect(modelServer?.providerFailures).toEqual([reason])
      const warnings = service.stderr.split('\n').filter((line) => line.includes('execution provider fails'))
      expect(warnings).toHaveLength(2)
      for (const warning of warnings) expect(warning).toContain('libcublasLt.so.99 is missing')
    },
  )

  it('is told by doctor and check, which try it', { timeout: 90_000 }, () => {
    const main = installationWithBrokenCuda()
    expect(findings(main, ['doctor'])).toContainEqual({
      subject: 'provider cuda',
      state: 'warning',
      detail: `installed, but runs no model: ${missing}`,
      fix: expect.stringContaining('docs/models.md') as string,
    })
    expect(findings(main, ['check', '-c', pipeline()])).toContainEqual({
      subject: 'providers',
      state: 'warning',
      detail: `cpu runs the models; ${reason}`,
      fix: expect.stringContaining('leave cuda out of inference.providers') as string,
    })
    const only = pipeline({ inference: { providers: ['cuda'] } })
    expect(findings(main, ['check', '-c', only])).toContainEqual(
      expect.objectContaining({ subject: 'providers', state: 'failed', detail: reason }),
    )
  })

  it(
    'R45: is tried again: models and cameras go over to it once it works',
    { timeout: 120_000 },
    async () => {
      const { main, makeRoom } = installationWithFullCuda()
      const file = pipeline({ inference: { providers: ['cuda', 'cpu'], retrySeconds: 1, instances: 1 } })
      const service = new GantryProcess(['serve', '-c', file, ...freely(tempDir())], { script: main })
      onTestFinished(() => service.kill())
      const url = await service.httpUrl()
      await until(
        'models of clients are loaded',
        async () => (await readinessAt(url)).modelServer?.models.ready === 1,
        60_000,
      )
      const { ready, reasons, engines } = await readinessAt(url)
      expect({ ready, reasons }).toEqual({
        ready: true,
        reasons: [`engine 0 runs on cpu: ${full}`, `models of clients run elsewhere, or not at all: ${full}`],
      })
      const use = 'model="red",version="1"'
      expect(await providersAt(url)).toEqual([
        `{engine="0",${use},provider="cpu",device=""} 1`,
        `{engine="0",${use},provider="cuda",device="0"} 0`,
        `{${use},provider="cpu",device=""} 1`,
        `{${use},provider="cuda",device="0"} 0`,
      ])
      await push(url)
      await until('a try that fails', () => service.stderr.includes('execution provider still fails'), 30_000)
      expect((await readinessAt(url)).engines[0]?.pid).toBe(engines[0]?.pid)
      makeRoom()
      await until('all run on it', async () => (await readinessAt(url)).reasons.length === 0, 60_000)
      const after = await readinessAt(url)
      expect(after.engines[0]).toMatchObject({ state: 'ready', detector: { provider: 'cuda' } })
      expect(await providersAt(url)).toEqual([
        `{engine="0",${use},provider="cuda",device="0"} 1`,
        `{${use},provider="cuda",device="0"} 1`,
      ])
      await push(url)
      await until('both pictures are analysed', async () =>
        (await metricsAt(url)).includes('gantry_frames_total{camera="a",state="inferred",cause=""} 2'),
      )
      const warned = service.stderr.split('\n').filter((line) => line.includes('execution provider fails'))
      expect(warned).toHaveLength(2)
      expect(service.stderr).not.toContain('plant-7')
    },
  )

  it(
    'R46: keeps a service that asks for it alone not ready, with the reason, until it works',
    {
      timeout: 120_000,
    },
    async () => {
      const { main, makeRoom } = installationWithFullCuda()
      const port = await freePort()
      const url = `http://127.0.0.1:${port}`
      const file = pipeline({ inference: { providers: ['cuda'] } })
      const args = ['serve', '-c', file, ...freely(tempDir()), '--http-port', String(port)]
      const service = new GantryProcess(args, { script: main })
      onTestFinished(() => service.kill())
      const because = `no execution provider can run the model: ${full}`
      const isTold = async () => (await readinessAt(url)).reasons.some((text) => text.includes(because))
      await until('the reason', isTold, 60_000)
      expect(await readinessAt(url)).toMatchObject({ status: 503, ready: false })
      makeRoom()
      await until('it is ready', async () => (await readinessAt(url)).status === 200, 60_000)
      expect((await readinessAt(url)).engines[0]?.detector?.provider).toBe('cuda')
      await until(
        'models of clients',
        async () => (await readinessAt(url)).modelServer?.models.ready === 1,
        60_000,
      )
    },
  )
})
