import { describe, expect, it } from 'vitest'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import { queueRules } from '../../../src/runtime/policies/queue-rules.js'
import { RequestQueue } from '../../../src/runtime/policies/request-queue.js'

type Entry = Readonly<{
  name: string
  batchSize: number
  shapeKey: string
  enqueuedMs: number
  priority: number
  timeoutUs: number
}>

function entry(name: string, more: Partial<Entry> = {}): Entry {
  return { name, batchSize: 1, shapeKey: '', enqueuedMs: 0, priority: 0, timeoutUs: 0, ...more }
}

function queueOf(text: string): RequestQueue<Entry> {
  const { dynamic_batching } = parseModelConfig(`dynamic_batching { ${text} }`, 'c')
  return new RequestQueue(queueRules(dynamic_batching!))
}

const names = (entries: Iterable<Entry>) => Array.from(entries, ({ name }) => name)

describe('RequestQueue', () => {
  it('takes the highest priority first, then the first that came', () => {
    const queue = queueOf('priority_levels: 3 default_priority_level: 2')
    for (const [name, priority] of [
      ['low', 3],
      ['default', 0],
      ['high', 1],
      ['middle', 2],
      ['beyond', 9],
    ] as const)
      queue.push(entry(name, { priority }))
    expect(names(queue)).toEqual(['high', 'default', 'middle', 'beyond', 'low'])
    expect(names(queue.take(2))).toEqual(['high', 'default'])
    expect(queue.size).toBe(3)
  })

  it('is full by level', () => {
    const queue = queueOf(
      'priority_levels: 2 default_priority_level: 2 default_queue_policy { max_queue_size: 1 } priority_queue_policy { key: 1 value { max_queue_size: 2 } }',
    )
    const push = (priority: number) => queue.push(entry('x', { priority }))
    expect([push(1), push(1), push(1), push(2), push(2)]).toEqual([true, true, false, true, false])
  })

  it('rejects what waited too long', () => {
    const queue = queueOf('default_queue_policy { default_timeout_microseconds: 10000 }')
    queue.push(entry('old'))
    queue.push(entry('young', { enqueuedMs: 5 }))
    expect(queue.timeoutInMs(4)).toBe(6)
    expect(names(queue.expire(9))).toEqual([])
    expect(names(queue.expire(10))).toEqual(['old'])
    expect(names(queue)).toEqual(['young'])
  })

  it('delays what waited too long behind all others of its level', () => {
    const queue = queueOf(
      'priority_levels: 2 default_priority_level: 1 default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 10000 }',
    )
    queue.push(entry('old'))
    queue.push(entry('young', { enqueuedMs: 5 }))
    queue.push(entry('low', { priority: 2, enqueuedMs: 9 }))
    expect(queue.expire(10)).toEqual([])
    expect(names(queue)).toEqual(['young', 'old', 'low'])
    expect(queue.oldestMs()).toBe(0)
    expect(queue.expire(12)).toEqual([])
    expect(names(queue)).toEqual(['young', 'old', 'low'])
  })

  it.each([
    ['shortens the time-out where that is allowed', 'allow_timeout_override: true', 4_000, 4],
    ['does not lengthen it', 'allow_timeout_override: true', 40_000, 10],
    ['takes 0 for no time-out of its own', 'allow_timeout_override: true', 0, 10],
    ['does not change it where that is not allowed', '', 4_000, 10],
  ])('a request %s', (_, policy, timeoutUs, expectedMs) => {
    const queue = queueOf(`default_queue_policy { default_timeout_microseconds: 10000 ${policy} }`)
    queue.push(entry('x', { timeoutUs }))
    expect(queue.timeoutInMs(0)).toBe(expectedMs)
  })

  it('ignores the time-out of a request where the configuration has none', () => {
    const queue = queueOf('default_queue_policy { allow_timeout_override: true }')
    queue.push(entry('x', { timeoutUs: 1 }))
    expect(queue.timeoutInMs(0)).toBeUndefined()
  })
})
