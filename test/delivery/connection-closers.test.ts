import { describe, expect, it } from 'vitest'
import { ConnectionClosers } from '../../src/delivery/connection-closers.js'
import { queuedRecord } from '../support/queued-record.js'

/** Each camera has a partition of its own. Sends to a broker that closes the connection over some records, until all are settled or so often. */
function sendAll(ids: string, closes: (id: string) => boolean, atMost = 200) {
  let waiting = ids.split(' ').map(queuedRecord)
  const closers = new ConnectionClosers(100)
  const sends: string[] = []
  const taken: string[] = []
  const condemned: string[] = []
  while (waiting.length > 0 && sends.length < atMost) {
    const sent = closers.next(waiting)
    sends.push(sent.map(({ id }) => id).join(' '))
    if (sent.some(({ id }) => closes(id))) {
      closers.closed(sent)
      continue
    }
    const guilty = closers.taken(sent, ({ cameraId }) => cameraId)
    taken.push(...sent.map(({ id }) => id))
    condemned.push(...guilty.map(({ id }) => id))
    waiting = waiting.filter((one) => !sent.includes(one) && !guilty.includes(one))
  }
  return { sends, taken, condemned }
}

describe('ConnectionClosers', () => {
  it('sends all at once while nothing is closed', () => {
    expect(sendAll('a1 b1 a2', () => false).sends).toEqual(['a1 b1 a2'])
  })

  it('sends less and less, and condemns what closes every connection once another of its partition is taken', () => {
    const { sends, condemned } = sendAll('a1 b1 a2 a3', (id) => id === 'a1')
    expect(sends).toEqual(['a1 b1 a2 a3', 'a1 b1', 'a1', 'a1', 'b1', 'a2', 'a3'])
    expect(condemned).toEqual(['a1'])
  })

  it('finds several in a row', () => {
    const { taken, condemned } = sendAll('a1 a2 a3 a4', (id) => id < 'a4')
    expect(taken).toEqual(['a4'])
    expect(condemned).toEqual(['a1', 'a2', 'a3'])
  })

  it('condemns nothing while everything is closed, and begins again with the oldest', () => {
    const { sends, condemned } = sendAll('a1 a2', () => true, 20)
    expect(condemned).toEqual([])
    expect(sends.slice(1, 9)).toEqual(['a1', 'a1', 'a2', 'a2', 'a1', 'a1', 'a2', 'a2'])
  })

  it('condemns nothing of a partition of which nothing is taken', () => {
    const { taken, condemned } = sendAll('a1 b1 a2 b2', (id) => id.startsWith('a'), 50)
    expect(taken).toEqual(['b1', 'b2'])
    expect(condemned).toEqual([])
  })

  it('sends more again after a while', () => {
    const ids = Array.from({ length: 300 }, (_, i) => `a${i}`)
    let closed = 0
    const { sends } = sendAll(ids.join(' '), (id) => id === 'a0' && (closed += 1) < 8)
    expect(sends.at(-1)?.split(' ').length).toBeGreaterThan(1)
  })
})
