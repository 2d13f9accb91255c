import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { describedMetrics, metricsPage, withMetrics } from '../../scripts/metrics-docs.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const page = readFileSync(metricsPage, 'utf8')

describe('docs/metrics.md', () => {
  it('has the tables of the registries; `npm run schemas` writes them', async () => {
    expect(await withMetrics(page)).toBe(page)
  })

  it('names every metric and every label that a service answers', async () => {
    const repository = tempDir()
    addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
    await using service = await TestService.start({
      pipeline: {
        models: { repository },
        ensemble: 'red',
        modelServer: { enabled: true },
        mediaRoot: process.cwd(),
        cameras: [{ id: 'a', url: join(process.cwd(), 'pipelines/demo/clips/dock.mp4') }],
      },
    })
    const text = async () => (await service.fetch('/metrics')).text()
    await until('results and models', async () =>
      /gantry_infer_seconds_count.*\n[^]*nv_inference_count/.test(await text()),
    )
    const described = new Map([...(await describedMetrics()).values()].flat().map((one) => [one.name, one]))
    const answered = [...(await text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)]
    expect(answered.length).toBeGreaterThan(40)
    for (const [, name = '', kind] of answered)
      expect([name, described.get(name)?.kind]).toEqual([name, kind])
    for (const [, series = '', labels = ''] of (await text()).matchAll(/^([a-z_0-9]+)\{([^}]*)\}/gm)) {
      const { labels: known = [] } =
        described.get(series) ?? described.get(series.replace(/_(bucket|sum|count)$/, '')) ?? {}
      const given = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label)
      expect([series, given.filter((label) => label !== 'le' && !known.includes(label ?? ''))]).toEqual([
        series,
        [],
      ])
    }
  })
})
