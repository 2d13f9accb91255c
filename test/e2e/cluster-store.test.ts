import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { gapMessageSchema, type GapMessage } from '../../src/messages/gap-message.js'
import { consumeAll } from '../support/kafka-records.js'
import { kafkaMissing } from '../support/kafka.js'
import { TestNodes } from '../support/nodes.js'
import { until } from '../support/until.js'

const cameras = 4
const missing = await kafkaMissing()

describe.skipIf(missing !== undefined)('a node whose volume is gone', () => {
  let nodes: TestNodes

  beforeAll(async () => {
    nodes = await TestNodes.start()
  }, 120_000)
  afterEach(() => nodes.clear())
  afterAll(() => nodes[Symbol.asyncDispose]())

  const isGap = (value: unknown): value is GapMessage => gapMessageSchema.safeParse(value).success

  it('R179: tells what may be lost when it starts without its store, and nothing when it has it', async () => {
    const pipeline = { cameras: nodes.cameras(cameras) }
    const first = await nodes.add('a', { pipeline })
    await nodes.add('b', { pipeline })
    await nodes.spread(first, cameras, 2)
    const events = await consumeAll(nodes.broker.address, `${nodes.id}.events`)
    const gaps = () => events.records.map(({ value }) => value).filter(isGap)

    // With its store.
    first.kill('SIGTERM')
    expect(await first.exited()).toBe(0)
    const second = await nodes.add('a', { like: first, pipeline })
    await nodes.spread(second, cameras, 2)
    const killedMs = Date.now()
    second.kill('SIGKILL')
    await second.exited()
    expect(gaps()).toEqual([])

    // Without.
    rmSync(join(second.dir, 'data'), { recursive: true })
    const startedMs = Date.now()
    const third = await nodes.add('a', { like: second, pipeline })
    const told = await until('the gap', () => gaps()[0], 60_000, 250)
    expect(told).toMatchObject({ cameraId: '*', sink: 'kafka', reason: 'store_lost' })
    expect(told.dropped).toBeGreaterThanOrEqual(1)
    // From the last note, at most ten seconds before it died.
    expect(Date.parse(told.from)).toBeLessThanOrEqual(killedMs)
    expect(Date.parse(told.from)).toBeGreaterThan(killedMs - 20_000)
    expect(Date.parse(told.to)).toBeGreaterThanOrEqual(startedMs)
    process.stderr.write(`store lost: ${JSON.stringify(told)}\n`)
    expect(third.stderr).toMatch(/the store that this node had is gone/)

    // Once.
    third.kill('SIGTERM')
    expect(await third.exited()).toBe(0)
    const fourth = await nodes.add('a', { like: third, pipeline })
    await nodes.spread(fourth, cameras, 2)
    expect(gaps()).toHaveLength(1)
    await events.stop()
  }, 240_000)
})
