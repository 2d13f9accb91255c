import { expect, it } from 'vitest'
import { RetainedTopics } from '../../../src/delivery/mqtt/retained-topics.js'

it('publishes what differs from what the broker has, all of it over a new connection, and of many changes the last', async () => {
  const retained = new RetainedTopics()
  const sent: string[] = []
  let isAway = false
  const publish = async (topic: string, payload: string) => {
    if (isAway) throw new Error('away')
    sent.push(`${topic}=${payload}`)
  }
  retained.set('a', '1')
  await retained.flush()
  expect(sent.splice(0)).toEqual([])
  retained.connected(publish)
  retained.set('b', '1')
  retained.set('b', '2')
  await retained.flush()
  await retained.flush()
  expect(sent.splice(0)).toEqual(['a=1', 'b=2'])
  isAway = true
  retained.set('a', '3')
  retained.remove('b')
  retained.remove('never there')
  await retained.flush()
  isAway = false
  await retained.flush()
  expect(sent.splice(0)).toEqual(['a=3', 'b='])
  await retained.flush()
  expect(sent).toEqual([])
  retained.connected(publish)
  await retained.flush()
  expect(sent).toEqual(['a=3'])
})
