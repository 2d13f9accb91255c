import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { detectionsMessageSchema } from '../../src/messages/detections-message.js'
import { consumeAll } from '../support/kafka-records.js'
import { kafkaMissing } from '../support/kafka.js'
import { TestNodes } from '../support/nodes.js'
import { until } from '../support/until.js'

const cameras = 6
const hourMs = 3_600_000
const preload = fileURLToPath(new URL('../support/stepping-clock.mjs', import.meta.url))
const missing = await kafkaMissing()

describe.skipIf(missing !== undefined)('nodes whose clocks are apart', () => {
  let nodes: TestNodes

  beforeAll(async () => {
    nodes = await TestNodes.start()
  }, 120_000)
  afterEach(() => nodes.clear())
  afterAll(() => nodes[Symbol.asyncDispose]())

  it.each([
    ['an hour ahead', hourMs, /^b: its clock is 3600 s ahead of/],
    ['an hour behind', -hourMs, /^b: its clock is 3600 s behind/],
  ])(
    'R177: %s: they hand cameras over as ever, generations go up, and the clock is told',
    async (_, wrongByMs, told) => {
      const clock = join(nodes.folder, `clock-${wrongByMs}`)
      writeFileSync(clock, String(wrongByMs))
      const wrong = { NODE_OPTIONS: `--import=${preload}`, GANTRY_TEST_CLOCK: clock }
      const first = await nodes.add('a', { pipeline: { cameras: nodes.cameras(cameras) } })
      const second = await nodes.add('b', { env: wrong })
      await nodes.spread(first, cameras, 2)

      const { reasons, ready } = await until('it is told', async () => {
      const readiness = await first.readiness()
      return readiness.reasons.some((reason) => reason.includes('its clock is')) ? readiness : undefined
    }, 60_000, 250) // prettier-ignore
      expect(ready).toBe(true)
      expect(reasons.join()).toMatch(/let both follow one time server/)
      for (const path of ['/api/v1/detections?limit=5', '/api/v1/coverage'])
        expect((await first.json<{ incomplete: readonly string[] }>(path)).incomplete).toEqual([
          expect.stringMatching(told),
        ])
      expect(await first.metric(/gantry_cluster_clock_skew_seconds/)).toBeCloseTo(hourMs / 1_000, -1)

      // Over to the one that is wrong, and back again.
      first.kill('SIGKILL')
      await first.exited()
      await nodes.spread(second, cameras, 1)
      const again = await nodes.add('a', { like: first })
      await nodes.spread(again, cameras, 2)
      second.kill('SIGTERM')
      expect(await second.exited()).toBe(0)
      await nodes.spread(again, cameras, 1)

      const consumer = await consumeAll(nodes.broker.address, `${nodes.id}.detections`)
      const turns = new Map<string, { node: string; generation: number }[]>()
      await until('the last turn of each', () => {
      turns.clear()
      for (const { value } of consumer.records) {
        const { cameraId, owner } = detectionsMessageSchema.parse(value)
        const known = turns.get(cameraId) ?? []
        if (known.at(-1)?.generation !== owner!.generation) turns.set(cameraId, [...known, owner!])
      }
      return turns.size === cameras && [...turns.values()].every((all) => all.length > 1 && all.at(-1)!.node === 'a')
    }, 60_000, 250) // prettier-ignore
      await consumer.stop()
      for (const [id, all] of turns) {
        // The rule of readers, the highest generation counts, leaves the newest owner.
        const highest = all.reduce((most, one) => (one.generation > most.generation ? one : most))
        expect([id, highest]).toEqual([id, all.at(-1)])
        expect(all.some(({ node }) => node === 'b')).toBe(true)
      }
      process.stderr.write(`turns of cam-1: ${JSON.stringify(turns.get('cam-1'))}\n`)
    },
    240_000,
  )
})
