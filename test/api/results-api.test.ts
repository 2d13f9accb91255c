import { describe, expect, it } from 'vitest'
import { detectionsPageSchema } from '../../src/api/past-schemas.js'
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
    await gantry.addCamera(fakeCamera('a'))
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

describe('a name in a query that nobody has', () => {
  it.each(['detections', 'events'])('is no empty page of %s: a camera', async (list) => {
    const { url, gantry } = await serveFake()
    await gantry.addCamera(fakeCamera('dock-1'))
    const reply = await ask(`${url}/api/v1/${list}?camera=dok-1`)
    const problem = problemSchema.parse(reply.json)
    expect([reply.status, problem.code]).toEqual([404, 'GANTRY_CAMERA_NOT_FOUND'])
    expect(problem.detail).toContain('dok-1')
  })

  it.each([
    ['helmt', 'did you mean "helmet"?'],
    ['forklift', 'known here: helmet, head, person'],
  ])('is no empty page: the label %s', async (label, message) => {
    const { url } = await serveFake()
    const reply = await ask(`${url}/api/v1/detections?label=${label}`)
    const problem = problemSchema.parse(reply.json)
    expect([reply.status, problem.problems]).toEqual([400, [{ path: 'label', message }]])
  })

  it('is an empty page where nothing was found of what is there', async () => {
    const { url, gantry } = await serveFake()
    await gantry.addCamera(fakeCamera('a'))
    const reply = await ask(`${url}/api/v1/detections?camera=a&label=helmet`)
    expect([reply.status, reply.json]).toEqual([200, { items: [] }])
  })

  it('gives what is kept of a label that another model had', async () => {
    const { url, gantry } = await serveFake()
    await gantry.addCamera(fakeCamera('a'))
    gantry.emit(fakeResult('a', 1))
    gantry.engines = gantry.engines.map((engine) => ({
      ...engine,
      detector: engine.detector && { ...engine.detector, labels: ['forklift'] },
    }))
    const kept = fakeResult('a', 1).detections[0]!.label
    expect((await ask(`${url}/api/v1/detections?label=${kept}`)).status).toBe(200)
  })

  it('is taken as it is while no model is loaded', async () => {
    const { url, gantry } = await serveFake()
    gantry.engines = []
    expect((await ask(`${url}/api/v1/detections?label=anything`)).status).toBe(200)
  })
})

it('answers past events with an empty page while there are no rules', async () => {
  const { url } = await serveFake()
  const reply = await ask(`${url}/api/v1/events?limit=10`)
  expect([reply.status, reply.json]).toEqual([200, { items: [] }])
})
