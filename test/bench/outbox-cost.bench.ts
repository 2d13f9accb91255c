/**
 * What storing a result before anybody is told of it costs. `npx tsx test/bench/outbox-cost.bench.ts [records per second] [pairs]`
 *
 * The same results go through a store that commits them and through one that keeps them in memory, in turn. `outbox_cpu`: processor time of
 * all threads a record, and what is left of it for storing. `outbox_wait`: from handing a result over until it is published.
 * `outbox_bytes`: what is written to files for a record whose value has 1,500 bytes, moving the log into the file among it, and what of it
 * the system brings to the disk; a sink takes each record at once.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { nowMs } from '../../src/lifecycle/clock.js'
import { eventTypes } from '../../src/messages/cloud-event.js'
import { createStoreMetrics } from '../../src/metrics/store-metrics.js'
import { RecordStore } from '../../src/store/record-store.js'
import { silentLog } from '../support/silent-log.js'
import { medianOf, quantile, report } from './bench.js'

const [perSecond = 100, pairs = 15] = process.argv.slice(2).map(Number)
const roundMs = 3_000
const value = Buffer.alloc(1_500, 'x')

/** Bytes that this process wrote: by calls, and pages of files that they changed. */
function written(): Readonly<{ calls: number; disk: number }> {
  const io = readFileSync('/proc/self/io', 'utf8')
  const bytesOf = (name: string) => Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(io)?.[1])
  return { calls: bytesOf('wchar'), disk: bytesOf('write_bytes') }
}

async function round(detections: 'outbox' | 'memory') {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-outbox-cost-'))
  const settings = {
    folder,
    epoch: 'e1',
    detections,
    sinks: ['kafka'],
    maxBytes: 1024 ** 3,
    maxAgeMs: 86_400_000,
  }
  const store = new RecordStore(settings, createStoreMetrics(new Registry()), silentLog())
  await store.start()
  await delay(200)
  const waits: number[] = []
  const before = process.cpuUsage()
  const writtenBefore = written()
  const beganMs = nowMs()
  let seq = 0
  while (nowMs() - beganMs < roundMs) {
    const due = ((nowMs() - beganMs) / 1_000) * perSecond
    for (; seq <= due; seq += 1) {
      const sentMs = nowMs()
      const cameraId = `cam-${seq % 16}`
      const record = {
        id: `${cameraId}/e/${seq}`,
        type: eventTypes.detections,
        cameraId,
        seq,
        timeMs: Date.now(),
        value,
      }
      store.accept(record, ({ position }) => {
        waits.push(nowMs() - sentMs)
        store.settle('kafka', position)
      })
    }
    await delay(1)
  }
  await store.drain(1_000)
  const { user, system } = process.cpuUsage(before)
  await store.stop()
  const { calls, disk } = written()
  rmSync(folder, { recursive: true })
  const bytes = { calls: (calls - writtenBefore.calls) / seq, disk: (disk - writtenBefore.disk) / seq }
  return { cpuUs: (user + system) / seq, waits, bytes }
}

const cpu: { outbox: number; memory: number }[] = []
const waits: number[] = []
const bytes: { calls: number; disk: number }[] = []
await round('outbox')
for (let pair = 0; pair < pairs; pair += 1) {
  const outbox = await round('outbox')
  const memory = await round('memory')
  cpu.push({ outbox: outbox.cpuUs, memory: memory.cpuUs })
  waits.push(...outbox.waits)
  bytes.push({
    calls: outbox.bytes.calls - memory.bytes.calls,
    disk: outbox.bytes.disk - memory.bytes.disk,
  })
}
const { median, interval } = medianOf(cpu.map(({ outbox, memory }) => outbox - memory))
report('outbox_cpu', 'us/record', { added: median, interval, pairs, perSecond })
report('outbox_wait', 'ms', { p50: quantile(waits, 0.5), p99: quantile(waits, 0.99), records: waits.length })
report('outbox_bytes', 'bytes/record', {
  written: medianOf(bytes.map(({ calls }) => calls)).median,
  toDisk: medianOf(bytes.map(({ disk }) => disk)).median,
  perSecond,
})
