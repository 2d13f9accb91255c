import { CompressionTypes, type PartitionMetadata, type ProducerBatch, type RecordMetadata } from 'kafkajs'
import { describe, expect, it } from 'vitest'
import { kafkaSchema } from '../../../src/config/outputs.js'
import { KafkaLink } from '../../../src/delivery/kafka/kafka-producer-link.js'
import { KafkaTopics } from '../../../src/delivery/kafka/kafka-topics.js'
import type { LeaderWatch } from '../../../src/delivery/kafka/leader-watch.js'
import { PartitionLeaders } from '../../../src/delivery/kafka/partition-leaders.js'
import { SocketGuard } from '../../../src/delivery/kafka/socket-guard.js'
import type { QueuedRecord } from '../../../src/delivery/record-queue.js'
import { atMost } from '../../../src/lifecycle/delay.js'
import { freePort } from '../../support/free-port.js'
import { queuedRecord } from '../../support/queued-record.js'
import { silentLog } from '../../support/silent-log.js'

const topic = 'gantry.detections.v1'
const partition = (partitionId: number, leader: number): PartitionMetadata => ({
  ...{ partitionErrorCode: 0, partitionId, leader, replicas: [1, 2, 3], isr: [1, 2, 3], offlineReplicas: [] },
})

type Sent = readonly Readonly<{ partition: number; ids: readonly string[] }>[]
type Answer = (sent: Sent, call: number) => Promise<readonly number[]>

/** A link whose client library answers as told: with the partitions that are acknowledged. Partitions 0, 1, 2 have leaders 1, 2, 3. */
function linkWith(answer: Answer, moved: LeaderWatch['moved'] = () => new Promise(() => undefined)) {
  const calls: Sent[] = []
  const sendBatch = async ({ topicMessages }: ProducerBatch): Promise<RecordMetadata[]> => {
    const messages = (topicMessages ?? []).flatMap((one) => one.messages)
    const partitions = [...new Set(messages.map((message) => message.partition ?? -1))]
    const sent = partitions.map((one) => ({
      partition: one,
      ids: messages
        .filter((message) => message.partition === one)
        .map(({ headers }) => String(headers?.['ce_id'])),
    }))
    calls.push(sent)
    const taken = await answer(sent, calls.length)
    return taken.map((one) => ({ topicName: topic, partition: one, errorCode: 0 }))
  }
  const config = kafkaSchema.parse({ brokers: ['127.0.0.1:1'] })
  const leaders = new PartitionLeaders()
  leaders.learn(topic, [partition(0, 1), partition(1, 2), partition(2, 3)])
  const admin = () => {
    throw new Error('is not asked')
  }
  const guard = new SocketGuard()
  const link = new KafkaLink({
    watch: { moved },
    ...{ producer: { sendBatch }, guard, leaders, config },
    ...{ codec: CompressionTypes.None, deadLetters: undefined },
    topics: new KafkaTopics({ admin }, config, silentLog()),
  })
  const taken: string[] = []
  const send = (records: readonly QueuedRecord[], deadlineMs = 30_000) =>
    link.send(records, deadlineMs, (some) => taken.push(...some.map(({ id }) => id)))
  return { link, guard, leaders, calls, taken, send }
}

/** Two records of a camera in each of the partitions 0, 1 and 2. */
function records(): { byPartition: readonly (readonly string[])[]; all: readonly QueuedRecord[] } {
  const { link } = linkWith(async () => [])
  const cameras = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l']
  const first = [0, 1, 2].map((wanted) =>
    cameras.find((camera) => link.partitionOf(queuedRecord(`${camera}1`)) === `${topic} ${wanted}`),
  )
  const byPartition = first.map((camera) => [`${camera}1`, `${camera}2`])
  return { byPartition, all: [1, 2].flatMap((seq) => first.map((camera) => queuedRecord(`${camera}${seq}`))) }
}

/** A connection to where nobody listens. */
async function refused(guard: SocketGuard): Promise<void> {
  const port = await freePort()
  const socket = guard.factory({ host: '127.0.0.1', port, ssl: {}, onConnect: () => undefined })
  await new Promise((resolve) => socket.once('close', resolve))
}

const allOf = (sent: Sent) => sent.map((one) => one.partition)

describe('KafkaLink', () => {
  it('sends each leader what it leads, in order', async () => {
    const { byPartition, all } = records()
    const { calls, taken, send } = linkWith(async (sent) => allOf(sent))
    await send(all)
    expect(calls).toEqual(byPartition.map((ids, index) => [{ partition: index, ids }]))
    expect(taken.sort()).toEqual(byPartition.flat().sort())
  })

  it('R138: keeps what others have taken when one leader fails, and what comes late does not count', async () => {
    const { byPartition, all } = records()
    let answerLate: (partitions: readonly number[]) => void = () => undefined
    const { link, taken, send } = linkWith(async (sent) => {
      if (sent[0]?.partition === 1)
        throw Object.assign(new Error('moved'), { type: 'NOT_LEADER_FOR_PARTITION' })
      return allOf(sent)
    })
    await expect(send(all)).rejects.toThrow('moved')
    expect(taken.sort()).toEqual([...(byPartition[0] ?? []), ...(byPartition[2] ?? [])].sort())
    link.close()

    const slow = linkWith((sent) =>
      sent[0]?.partition === 1
        ? new Promise((resolve) => (answerLate = resolve))
        : Promise.resolve(allOf(sent)),
    )
    await expect(slow.send(all, 20)).rejects.toThrow('no acknowledgement within 20 ms')
    answerLate([1])
    await new Promise(setImmediate)
    expect(slow.taken.sort()).toEqual([...(byPartition[0] ?? []), ...(byPartition[2] ?? [])].sort())
  })

  it('R137: sends a partition again that no answer speaks of, although the call succeeded', async () => {
    const { byPartition, all } = records()
    const { leaders, calls, taken, send } = linkWith(async (sent, call) => {
      if (call > 3) return allOf(sent)
      // As kafkajs does when the leader of partition 1 moves to a broker that has answered already.
      leaders.learn(topic, [partition(0, 1), partition(1, 1), partition(2, 3)])
      return allOf(sent).filter((one) => one !== 1)
    })
    await send(all)
    expect(calls.slice(3)).toEqual([[{ partition: 1, ids: byPartition[1] }]])
    expect(taken.sort()).toEqual(byPartition.flat().sort())
  })

  it('R159: waits for others no longer than a second once what one of them led has moved', async () => {
    const { byPartition, all } = records()
    const { taken, send } = linkWith(
      (sent) => (sent[0]?.partition === 2 ? Promise.resolve(allOf(sent)) : new Promise(() => undefined)),
      async ([led]) => {
        if (led?.partition === 0) return 'it has another leader now'
        return new Promise(() => undefined)
      },
    )
    await expect(send(all)).rejects.toThrow('it has another leader now')
    expect(taken.sort()).toEqual([...(byPartition[2] ?? [])].sort())
  })

  it('R138: waits for what others have not acknowledged yet where the one whose partitions have moved has ended', async () => {
    const { byPartition, all } = records()
    let answerLate: () => void = () => undefined
    const { guard, taken, send } = linkWith(
      (sent) => {
        const late = new Promise<void>((resolve) => (answerLate = resolve))
        return sent[0]?.partition === 2 ? late.then(() => allOf(sent)) : new Promise(() => undefined)
      },
      async ([led]) => {
        if (led?.partition !== 2) await refused(guard)
        return led?.partition === 2 ? new Promise(() => undefined) : 'it has another leader now'
      },
    )
    const ended = send(all).then(
      () => 'sent',
      (error: Error) => error.message,
    )
    // Longer than others are waited for where it stands still.
    expect(await atMost(1_500, ended)).toBeUndefined()
    answerLate()
    expect(await ended).toContain('it has another leader now')
    expect(taken.sort()).toEqual([...(byPartition[2] ?? [])].sort())
  })

  it('R138: waits for the others where one fails or refuses: they wait for copies, and nothing is sent to them again', async () => {
    const { byPartition, all } = records()
    const answers: (() => void)[] = []
    const { taken, send } = linkWith(async (sent) => {
      if (sent[0]?.partition === 0) throw Object.assign(new Error('too large'), { type: 'MESSAGE_TOO_LARGE' })
      await new Promise<void>((resolve) => answers.push(resolve))
      return allOf(sent)
    })
    const refused = expect(send(all)).rejects.toThrow('too large')
    while (answers.length < 2) await new Promise(setImmediate)
    for (const answer of answers) {
      answer()
      await new Promise(setImmediate)
    }
    await refused
    expect(taken.sort()).toEqual([...(byPartition[1] ?? []), ...(byPartition[2] ?? [])].sort())
  })

  it('fails when no answer speaks of anything that was sent', async () => {
    const { all } = records()
    const { taken, send } = linkWith(async () => [])
    await expect(send(all)).rejects.toThrow(`kafka: no broker answers for ${topic}`)
    expect(taken).toEqual([])
  })

  it('tells of a failed leader before a refusal, as the connection is of no use then', async () => {
    const { all } = records()
    const { send } = linkWith(async (sent) => {
      const type = sent[0]?.partition === 0 ? 'MESSAGE_TOO_LARGE' : 'NOT_ENOUGH_REPLICAS'
      throw Object.assign(new Error(type), { type })
    })
    await expect(send(all)).rejects.toThrow('NOT_ENOUGH_REPLICAS')
  })

  it('ends at once when it is closed', async () => {
    const { all } = records()
    const { link, send } = linkWith(() => new Promise(() => undefined))
    const sent = send(all)
    link.close()
    await expect(sent).rejects.toThrow('kafka client ended')
  })
})
