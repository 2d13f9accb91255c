import { describe, expect, it } from 'vitest'
import { sinkFilterSchema } from '../../src/config/sink-filter.js'
import { RecordFilter } from '../../src/delivery/record-filter.js'
import { detectionsText as textOfDetections, type DetectionsOverrides } from '../support/detections.js'

const filter = (settings: Record<string, unknown>) => new RecordFilter(sinkFilterSchema.parse(settings))
const detectionsText = (overrides: DetectionsOverrides = {}) => {
  const { cameraId, capturedAtMs, json: value } = textOfDetections(overrides)
  const time = new Date(capturedAtMs).toISOString()
  return { id: 'r', type: 'gantry.detections.v1', cameraId, time, value } as const
}
const labelsOf = (json: Buffer) =>
  (JSON.parse(json.toString()) as { detections: { label: string }[] }).detections.map(({ label }) => label)

describe('RecordFilter', () => {
  it('lets everything through as it is where nothing is set', () => {
    const text = detectionsText({ detections: [] })
    expect(filter({}).judge(text)).toEqual({ kind: 'send', value: text.value })
    expect(filter({ cameras: ['*'] }).judge(text).kind).toBe('send')
  })

  it.each([
    ['another camera', { cameras: ['gate'] }, 'filtered'],
    ['its camera', { cameras: ['gate', 'dock-1'] }, 'helmet,person'],
    ['one label', { labels: ['person'] }, 'person'],
    ['no label of it', { labels: ['head'] }, 'filtered'],
    ['a score', { minScore: 0.7 }, 'helmet'],
    ['a score that none has', { minScore: 0.95 }, 'filtered'],
    ['a label under the score', { labels: ['person'], minScore: 0.7 }, 'filtered'],
    ['a part of a label', { labels: ['pers'] }, 'filtered'],
  ])('goes by %s', (_, settings, outcome) => {
    const verdict = filter(settings).judge(detectionsText())
    expect(verdict.kind === 'send' ? labelsOf(verdict.value).join(',') : verdict.kind).toBe(outcome)
  })

  it('lets so many of each camera through in any minute, and counts none that it left out otherwise', () => {
    const limited = filter({ maxPerMinute: 2, labels: ['helmet'] })
    const at = (ms: number, cameraId = 'a', label = 'helmet') =>
      limited.judge(
        detectionsText({
          cameraId,
          capturedAtMs: 1_795_844_420_000 + ms,
          detections: [{ label, score: 0.9, boxPx: { x1: 0, y1: 0, x2: 1, y2: 1 } }],
        }),
      ).kind
    expect([at(0), at(5, 'a', 'head'), at(30_000), at(40_000), at(59_999)]).toEqual([
      'send',
      'filtered',
      'send',
      'over_limit',
      'over_limit',
    ])
    expect(at(59_999, 'b')).toBe('send')
    expect([at(60_000), at(60_001), at(90_000)]).toEqual(['send', 'over_limit', 'send'])
  })
})
