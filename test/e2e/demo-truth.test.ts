import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { framesPerSecond, observed } from '../../sim/index.js'
import { type Tally, countAgainstTruth } from '../support/against-truth.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

const clips = fileURLToPath(new URL('../../pipelines/demo/clips', import.meta.url))
const sites = ['dock', 'press-line', 'yard', 'gate'] as const
/** The clips last 24 s. A busy machine sheds frames, so that time is waited for, and not a number of results. */
const untilMs = 20_000

it('boxes helmets, heads, people and machines of the demo cameras where the truth has them', async () => {
  await using service = await TestService.start({
    pipeline: {
      mediaRoot: clips,
      cameras: sites.map((site) => ({ id: site, url: `${site}.mp4`, sampleFps: 2, loop: false })),
    },
  })
  const stream = await service.stream()
  const results = () => stream.messages.filter((message) => message.type === 'detections')
  await until(
    'the end of all clips',
    () =>
      sites.every((site) => results().some(({ cameraId, ptsMs }) => cameraId === site && ptsMs >= untilMs)),
    60_000,
  )
  stream.close()

  const tallies = new Map<string, Tally>()
  for (const site of sites) {
    const truthAt = await observed(`demo-${site}`)
    for (const { cameraId, ptsMs, detections } of results())
      if (cameraId === site)
        countAgainstTruth(detections, truthAt(Math.round((ptsMs * framesPerSecond) / 1000)), tallies)
  }
  for (const label of ['helmet', 'head', 'person', 'machinery']) {
    const { right, wrong, labelled } = tallies.get(label) ?? { right: 0, wrong: 0, labelled: 0 }
    expect(labelled, label).toBeGreaterThan(50)
    expect(right / (right + wrong), `precision of ${label}`).toBeGreaterThanOrEqual(0.9)
    expect(right / labelled, `recall of ${label}`).toBeGreaterThanOrEqual(0.9)
  }
}, 120_000)
