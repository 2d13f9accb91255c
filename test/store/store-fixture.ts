import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { eventTypes } from '../../src/messages/cloud-event.js'
import { createStoreMetrics } from '../../src/metrics/store-metrics.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'
import { RecordStore, type StoreSettings } from '../../src/store/record-store.js'
import type { Gap, PlacedRecord, SinkPlace, StoreRecord } from '../../src/store/record.js'
import { recordingLog } from '../support/silent-log.js'
import { tempDir } from '../support/temp-dir.js'

export function resultOf(seq: number, cameraId = 'dock-1', bytes = 20): StoreRecord {
  return {
    id: `${cameraId}/e/${seq}`,
    type: eventTypes.detections,
    cameraId,
    seq,
    timeMs: Date.now() - 100_000 + seq,
    value: Buffer.from(JSON.stringify({ cameraId, seq, label: `l${seq % 3}` }).padEnd(bytes)),
  }
}

export function eventOf(number: number, cameraId = 'dock-1'): StoreRecord {
  return {
    ...resultOf(number, cameraId),
    id: `${cameraId}/e/event-${number}`,
    type: eventTypes.events,
    seq: 0,
  }
}

/** A store in a folder, and what it published. */
export async function startStore(
  folder = tempDir(),
  settings: Partial<StoreSettings> = {},
  onGap?: (gap: Gap) => void,
) {
  const { log, lines } = recordingLog()
  const whole: StoreSettings = {
    folder,
    epoch: `e${Math.random().toString(36).slice(2)}`,
    detections: 'outbox',
    sinks: ['kafka'],
    maxBytes: 1024 ** 3,
    maxAgeMs: 7 * 24 * 3_600_000,
    ...settings,
  }
  const store = new RecordStore(whole, createStoreMetrics(createServiceMetrics().registry), log)
  onTestFinished(() => store.stop())
  let places: readonly SinkPlace[] = []
  store.onPlaces = (told) => (places = told)
  store.onGap = onGap
  const published: { record: PlacedRecord; isStored: boolean }[] = []
  const accept = (record: StoreRecord) =>
    new Promise<void>((resolve) =>
      store.accept(record, (placed, isStored) => {
        published.push({ record: placed, isStored })
        resolve()
      }),
    )
  await store.start()
  const path = join(folder, 'records.sqlite')
  return { folder, store, accept, published, lines, places: () => places, epoch: whole.epoch, path }
}
