import { Partitioners } from 'kafkajs'

const choose = Partitioners.DefaultPartitioner()

/**
 * The slot of a camera: the partition that Kafka's clients give a record with its id as key (murmur2 of the key), so that programs which set
 * cameras by Kafka need not know of slots.
 */
export function slotOf(cameraId: string, slots: number): number {
  return choose({
    topic: '',
    message: { key: cameraId, value: null },
    partitionMetadata: placesOf(slots),
  })
}

type Places = Parameters<typeof choose>[0]['partitionMetadata']
let known: Places = []

/** The partitioner wants to be told of each partition, and looks at their number alone for a record with a key. */
function placesOf(slots: number): Places {
  if (known.length !== slots)
    known = Array.from({ length: slots }, (_, partitionId) => ({
      partitionId,
      partitionErrorCode: 0,
      leader: 0,
      replicas: [],
      isr: [],
    }))
  return known
}
