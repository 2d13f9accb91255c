import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type DetectionsMessage,
  detectionsMessageSchema,
} from '../../../../src/messages/detections-message.js'
import { runBatch } from '../../../../src/tools/batch/run-batch.js'
import { KafkaOutput } from '../../../../src/tools/batch/outputs/kafka-output.js'
import { outputTarget } from '../../../../src/tools/batch/outputs/output-target.js'
import { batchOptions, bytesScorer, makePictures, scoreBytes } from '../../../support/batch-runs.js'
import { KafkaBroker, kafkaMissing } from '../../../support/kafka.js'
import { consumeAll } from '../../../support/kafka-records.js'
import { silentLog } from '../../../support/silent-log.js'
import { tempDir } from '../../../support/temp-dir.js'

describe('outputTarget', () => {
  it('takes brokers and topic from the URL, and refuses what is none', () => {
    expect(outputTarget('kafka://a:1,b:2/stored')).toMatchObject({
      kind: 'kafka',
      config: { brokers: ['a:1', 'b:2'], topics: { detections: 'stored' } },
    })
    expect(() => outputTarget('kafka://nowhere/t')).toThrow(/must be host:port/)
    expect(() => outputTarget('kafka')).toThrow(/none are set/)
    expect(() => outputTarget('out.xlsx')).toThrow(/names no format/)
    expect(outputTarget('out.txt', 'csv')).toEqual({ kind: 'file', path: 'out.txt', format: 'csv' })
  })
})

describe.skipIf(await kafkaMissing())('KafkaOutput', () => {
  it('R52: sends a record of each picture, and those that come twice after a cut have the same id', async () => {
    const broker = await KafkaBroker.start()
    onTestFinished(() => broker.stop())
    const dir = tempDir()
    const pictures = makePictures(join(dir, 'in'), 30)
    const out = `kafka://${broker.address}/stored`
    const stop = new AbortController()
    let calls = 0
    const scorer = bytesScorer((picture) => {
      if ((calls += 1) === 12) stop.abort()
      return scoreBytes(picture)
    })
    const options = { inputs: [pictures], out, stateDir: join(dir, 'state'), errorsPath: join(dir, 'errors') }
    expect(await runBatch(batchOptions({ ...options, scorer, signal: stop.signal }))).toMatchObject({
      complete: false,
    })
    expect(await runBatch(batchOptions(options))).toMatchObject({ complete: true, pictures: 30 })
    const consumer = await consumeAll(broker.address, 'stored')
    onTestFinished(() => consumer.stop())
    const records = await consumer.atLeast(30)
    expect(new Set(records.map(({ headers }) => headers['ce_id'])).size).toBe(30)
    const messages = records.map(({ value }) => value as DetectionsMessage)
    for (const message of messages) expect(detectionsMessageSchema.parse(message)).toBeTruthy()
    const files = messages.map(({ cameraId }) => cameraId)
    expect(new Set(files).size).toBe(30)

    // As after a kill between the acknowledgement and the state that counts it.
    const { runId } = JSON.parse(readFileSync(join(dir, 'state/run.json'), 'utf8')) as { runId: string }
    const target = outputTarget(out)
    if (target.kind !== 'kafka') throw new Error('it is a topic')
    const output = new KafkaOutput({ config: target.config, runId, patienceMs: 10_000, log: silentLog() })
    await output.open()
    const file = files[0]!
    const model = { name: 'bytes', version: '1' }
    const line = { item: file, file, widthPx: 8, heightPx: 8, quality: 'ok', model, detections: [] } as const
    output.add({ line: { ...line, detections: [] }, capturedAtMs: 0, inferMs: 0 })
    expect(await output.flush()).toEqual({ bytes: 0, refused: [] })
    await output.close()
    const all = await consumer.atLeast(31)
    expect(new Set(all.map(({ headers }) => headers['ce_id'])).size).toBe(30)
  }, 120_000)
})
