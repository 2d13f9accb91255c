import { describe, expect, it } from 'vitest'
import { detectionsPageSchema } from '../../src/api/api-schemas.js'
import { problemSchema } from '../../src/api/problem.js'
import { fakeCamera, fakeResult } from '../support/fake-gantry.js'
import { ask } from '../support/http.js'
import { serveFake } from '../support/serve-fake.js'

describe('past detections', () => {
  it('come newest first', async () => {
    const { url, gantry } = await serveFake()
    await gantry.addCamera(fakeCamera('a'))
    for (const seq of [1, 2, 3]) gantry.emit(fakeResult('a', seq))
    const page = detectionsPageSchema.parse((await ask(`${url}/api/v1/detections?limit=2`)).json)
    expect(page.items.map(({ seq }) => seq)).toEqual([3, 2])
  })

  it('hand every filter on as the cache wants it', async () => {
    const { url, gantry } = await serveFake()
    const query =
      'camera=a&label=head&from=2026-11-20T08:00:00Z&to=2026-11-20T10:00:00%2B01:00&limit=7&cursor=c1'
    expect((await ask(`${url}/api/v1/detections?${query}`)).status).toBe(200)
    expect(gantry.queries).toEqual([
      {
        cameraId: 'a',
        label: 'head',
        fromMs: Date.parse('2026-11-20T08:00:00Z'),
        toMs: Date.parse('2026-11-20T09:00:00Z'),
        limit: 7,
        cursor: 'c1',
      },
    ])
  })

  it.each([
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=1e2', 'limit'],
    ['limit=', 'limit'],
    ['limit=5&limit=6', 'limit'],
    ['from=yesterday', 'from'],
    ['from=2026-11-20', 'from'],
    ['from=2026-11-20T08:00:00Z&to=2026-11-20T07:00:00Z', 'to'],
    ['camera=..', 'camera'],
    ['label=', 'label'],
    ['colour=red', 'colour'],
    ['__proto__=1', '__proto__'],
    ['cursor=bad', 'cursor'],
  ])('refuse ?%s and name the field', async (query, path) => {
    const { url } = await serveFake()
    for (const list of query.startsWith('cursor') ? ['detections'] : ['detections', 'events']) {
      const reply = await ask(`${url}/api/v1/${list}?${query}`)
      expect(reply.status).toBe(400)
      expect(problemSchema.parse(reply.json).problems.map((problem) => problem.path)).toEqual([path])
    }
  })
})

it('answers past events with an empty page while there are no rules', async () => {
  const { url } = await serveFake()
  const reply = await ask(`${url}/api/v1/events?limit=10`)
  expect([reply.status, reply.json]).toEqual([200, { items: [] }])
})
