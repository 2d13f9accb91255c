import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Finding } from '../../src/cli/findings.js'
import type { ReadinessView } from '../../src/api/api-schemas.js'
import { installationWithBrokenCuda } from '../support/cuda-installation.js'
import { freely, GantryProcess } from '../support/gantry-process.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const reason = 'cuda: libcublasLt.so.99 is missing: it is part of CUDA 99'

/** A pipeline with one camera that is pushed to, and a detector of a few nodes. */
function pipeline(more: object = {}): string {
  const dir = tempDir()
  addModel(dir, 'red', { onnx: redDetector('uint8-nhwc'), config: 'max_batch_size: 4' })
  const file = join(dir, 'pipeline.json')
  const content = {
    ensemble: 'red',
    models: { repository: dir },
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
      const readiness = async () => {
        const response = await fetch(`${url}/readyz`)
        return { status: response.status, ...((await response.json()) as ReadinessView) }
      }
      await until(
        'models of clients are loaded',
        async () => (await readiness()).modelServer?.models.ready === 1,
        60_000,
      )
      const { status, ready, reasons, engines, modelServer } = await readiness()
      expect({ status, ready }).toEqual({ status: 200, ready: true })
      expect(reasons).toEqual([
        `engine 0 runs on cpu: ${reason}`,
        `models of clients run elsewhere: ${reason}`,
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
      detail: 'installed, but runs no model: libcublasLt.so.99 is missing: it is part of CUDA 99',
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

  it('ends a start that asks for it alone, with the reason', { timeout: 60_000 }, () => {
    const only = pipeline({ inference: { providers: ['cuda'] } })
    const args = [installationWithBrokenCuda(), 'serve', '-c', only, ...freely(tempDir())]
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    expect(status).not.toBe(0)
    expect(stderr).toContain('GANTRY_PROVIDER_UNAVAILABLE')
    expect(stderr).toContain(`no execution provider can run the model: ${reason}`)
  })
})
