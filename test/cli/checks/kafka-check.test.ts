import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkKafka } from '../../../src/cli/checks/kafka-check.js'
import { kafkaSchema } from '../../../src/config/outputs.js'
import { GantryProcess } from '../../support/gantry-process.js'
import { kafkaMissing, sharedKafka } from '../../support/kafka.js'
import { tempDir } from '../../support/temp-dir.js'

describe.skipIf((await kafkaMissing()) !== undefined)('checkKafka', () => {
  let broker: Awaited<ReturnType<typeof sharedKafka>>
  beforeAll(async () => {
    broker = await sharedKafka()
  }, 120_000)
  afterAll(() => broker.release())

  const config = (brokers: string[], rest = {}) => kafkaSchema.parse({ brokers, ...rest })

  it('says that topics are still to be created', async () => {
    const topics = { detections: `check-${process.pid}` }
    const [finding] = await checkKafka(config([broker.address], { topics }), true)
    expect(finding).toMatchObject({ state: 'ok' })
    expect(finding?.detail).toContain(`no topic check-${process.pid}`)
  })

  it('fails for absent topics that nobody will create', async () => {
    const settings = config([broker.address], { topics: { detections: 'check-absent' }, createTopics: false })
    expect(await checkKafka(settings, true)).toMatchObject([{ state: 'failed' }])
  })

  it('R30: prints no warning of Node about what the client library does', async () => {
    const file = join(tempDir(), 'pipeline.yaml')
    const sinks = { kafka: { brokers: [broker.address] } }
    await writeFile(file, JSON.stringify({ apiVersion: 'gantry/v1', name: 'checked', engines: 0, sinks }))
    const command = new GantryProcess(['check', '-c', file])
    await command.ended()
    expect(command.stdout).toContain(`kafka ${broker.address}`)
    expect(command.stderr).toBe('')
  })

  it('S17: warns of a login that anybody on the way can read', async () => {
    const sasl = { mechanism: 'plain', username: 'u', password: 'p' }
    const open = await checkKafka(config([broker.address], { sasl }), false)
    expect(open).toContainEqual(expect.objectContaining({ subject: 'kafka login', state: 'warning' }))
    const scram = { ...sasl, mechanism: 'scram-sha-256' }
    for (const safe of [{ sasl, ssl: true }, { sasl: scram }])
      expect(await checkKafka(config([broker.address], safe), false)).toHaveLength(1)
    const token = {
      mechanism: 'oauthbearer',
      tokenEndpoint: 'http://idp/token',
      clientId: 'a',
      clientSecret: 'b',
    }
    const findings = await checkKafka(config([broker.address], { sasl: token, ssl: true }), false)
    expect(findings[0]?.detail).toContain('clientSecret')
  })

  it('shows which broker of the list does not answer', async () => {
    const findings = await checkKafka(config([broker.address, '127.0.0.1:1']), true)
    expect(findings.map(({ state }) => state)).toEqual(['ok', 'failed'])
  })
})
