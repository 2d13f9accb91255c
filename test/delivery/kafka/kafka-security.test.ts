import { execFile } from 'node:child_process'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { checkKafka } from '../../../src/cli/checks/kafka-check.js'
import { kafkaSchema } from '../../../src/config/outputs.js'
import { detectionsMessage } from '../../support/detections.js'
import { kafkaMissing, storedBatches } from '../../support/kafka.js'
import { secureBroker } from '../../support/secure-kafka.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'
import { kafkaSink, ownTopic } from './kafka-fixture.js'

/** @throws what is said instead */
function told(reason: string, words: RegExp): boolean {
  if (words.test(reason)) return true
  throw new Error(reason)
}

describe.skipIf((await kafkaMissing()) !== undefined)(
  'The sink of Kafka and brokers as plants run them',
  () => {
    let secure: Awaited<ReturnType<typeof secureBroker>>
    const ended: (() => Promise<void>)[] = []
    beforeAll(async () => {
      secure = await secureBroker()
    }, 180_000)
    afterAll(() => secure.stop())
    afterEach(async () => {
      for (const end of ended.splice(0)) await end()
    })

    /** Delivers records, and gives back the topic they went to. */
    async function delivered(listener: Parameters<typeof secure.at>[0], overrides: object, count = 3) {
      const topic = ownTopic()
      const { sink, accept, lines } = kafkaSink(secure.at(listener), topic, { partitions: 1, ...overrides })
      ended.push(() => sink.stop(0))
      sink.start()
      for (let seq = 1; seq <= count; seq += 1) accept(detectionsMessage({ seq }))
      await until(
        'delivery',
        () => {
          if (sink.health.delivered === count) return true
          throw new Error(JSON.stringify([sink.health, lines.slice(-5)]))
        },
        60_000,
      )
      return { topic, sink, accept, lines }
    }

    /** What `check` says of a broker: state, words and fix in one line. */
    async function checked(listener: Parameters<typeof secure.at>[0], overrides: object): Promise<string> {
      const config = kafkaSchema.parse({ brokers: [secure.at(listener)], ...overrides })
      const findings = await checkKafka(config, true)
      const of = findings.find(({ subject }) => subject === `kafka ${secure.at(listener)}`)
      return `${of?.state}: ${of?.detail}; ${of?.fix ?? ''}`
    }

    const trusted = () => ({ ca: secure.authority.ca })

    it.each([
      ['gzip', 'gzip'],
      ['snappy', 'snappy'],
      ['lz4', 'lz4'],
      ['zstd', 'zstd'],
    ] as const)(
      'compresses by %s, which Kafka stores and another client reads back',
      { timeout: 120_000 },
      async (compression, codec) => {
        const { topic } = await delivered('TRUSTED', { ssl: trusted(), compression }, 20)
        const batches = await storedBatches(secure.broker, topic)
        expect(new Set(batches.map((batch) => batch.codec))).toEqual(new Set([codec]))
        const args = [
          '-C',
          '-b',
          secure.broker.address,
          '-t',
          topic,
          '-o',
          'beginning',
          '-c',
          '20',
          '-e',
          '-q',
        ]
        const { stdout } = await promisify(execFile)('kcat', args, { timeout: 60_000 })
        const seqs = stdout
          .trim()
          .split('\n')
          .map((line) => (JSON.parse(line) as { seq: number }).seq)
        expect(seqs).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
      },
    )

    it(
      'R72: tells a CA that is not trusted, an expired certificate and a wrong name in words of the settings',
      { timeout: 120_000 },
      async () => {
        expect(await checked('TRUSTED', { ssl: trusted() })).toMatch(/^ok: /)
        const unknown = /not signed by a CA that is trusted.*set sinks\.kafka\.ssl\.ca /
        expect(await checked('TRUSTED', { ssl: true })).toMatch(unknown)
        expect(await checked('EXPIRED', { ssl: trusted() })).toMatch(
          /has expired; renew it .*sinks\.kafka\.ssl\.ca/,
        )
        const renamed =
          /bears another name: .*kafka\.plant\.example.*127\.0\.0\.1.*sinks\.kafka\.ssl\.servername/
        expect(await checked('RENAMED', { ssl: trusted() })).toMatch(renamed)
        const servername = 'kafka.plant.example'
        expect(await checked('RENAMED', { ssl: { ...trusted(), servername } })).toMatch(/^ok: /)
        expect(await checked('TRUSTED', {})).toMatch(/it may ask for TLS \(sinks\.kafka\.ssl\)/)
        const { sink, lines } = kafkaSink(secure.at('RENAMED'), ownTopic(), { ssl: trusted() })
        ended.push(() => sink.stop(0))
        sink.start()
        await until('down', () => sink.health.state === 'down', 30_000)
        expect(sink.health.reason).toMatch(renamed)
        expect(lines.some(({ reason }) => typeof reason === 'string' && renamed.test(reason))).toBe(true)
      },
    )

    it(
      'R72: shows a certificate of its own where brokers ask for one, and says so where it has none',
      { timeout: 120_000 },
      async () => {
        expect(await checked('MUTUAL', { ssl: trusted() })).toMatch(
          /certificate.*sinks\.kafka\.ssl\.cert and sinks\.kafka\.ssl\.key/,
        )
        const own = secure.authority.issue('gantry', { passphrase: 'open sesame' })
        await delivered('MUTUAL', { ssl: { ...trusted(), ...own, passphrase: 'open sesame' } })
      },
    )

    it('R73: reads its certificates again when it connects the next time', { timeout: 120_000 }, async () => {
      const { TestAuthority } = await import('../../support/test-authority.js')
      const stranger = new TestAuthority('stranger')
      ended.push(() => Promise.resolve(stranger.remove()))
      const ca = join(tempDir(), 'ca.pem')
      writeFileSync(ca, secure.authority.text(stranger.ca))
      const { sink, accept } = kafkaSink(secure.at('TRUSTED'), ownTopic(), { ssl: { ca }, partitions: 1 })
      ended.push(() => sink.stop(0))
      sink.start()
      accept(detectionsMessage())
      await until('refused', () => told(sink.health.reason, /not signed by a CA/), 30_000)
      writeFileSync(`${ca}.new`, secure.authority.text(secure.authority.ca))
      renameSync(`${ca}.new`, ca)
      await until('delivered', () => sink.health.delivered === 1, 60_000)
    })

    it.each([
      ['plain', 'plain-secret'],
      ['scram-sha-256', 'scram-secret'],
      ['scram-sha-512', 'scram-secret'],
    ] as const)(
      'R74: logs in by %s, and tells a wrong password without repeating it',
      { timeout: 120_000 },
      async (mechanism, password) => {
        const sasl = { mechanism, username: 'gantry', password }
        await delivered('LOGIN', { ssl: trusted(), sasl })
        const wrong = await checked('LOGIN', { ssl: trusted(), sasl: { ...sasl, password: 'Canary-7Pass' } })
        expect(wrong).toMatch(
          /^failed: the broker refuses the login: .*correct username and password of sinks\.kafka\.sasl/,
        )
        expect(wrong).not.toContain('Canary')
      },
    )

    it(
      'R74: tells a mechanism that the broker does not offer, and a login that is missing',
      { timeout: 60_000 },
      async () => {
        const sasl = { mechanism: 'oauthbearer', token: 'x.y.z' }
        expect(await checked('LOGIN', { ssl: trusted(), sasl })).toMatch(/sinks\.kafka\.sasl\.mechanism/)
        expect(await checked('LOGIN', { ssl: trusted() })).toMatch(
          /it may ask for a login \(sinks\.kafka\.sasl\)/,
        )
      },
    )

    const byClient = () => ({
      mechanism: 'oauthbearer',
      tokenEndpoint: secure.tokens.url,
      clientId: 'gantry',
      clientSecret: 'let:me in',
      scope: 'produce',
    })

    it(
      'R75: asks the token endpoint by client credentials, once for as long as the token is good',
      { timeout: 120_000 },
      async () => {
        secure.tokens.asked.length = 0
        const { accept, sink } = await delivered('TOKENS', { ssl: trusted(), sasl: byClient() })
        expect(secure.tokens.asked[0]?.form).toBe('grant_type=client_credentials&scope=produce')
        const asked = secure.tokens.asked.length
        accept(detectionsMessage({ seq: 4 }))
        await until('one more', () => sink.health.delivered === 4, 30_000)
        expect(secure.tokens.asked).toHaveLength(asked)
        expect(asked).toBe(1)
      },
    )

    it(
      'R75: tells a token endpoint that refuses, is not there or is not trusted, and a token that the broker refuses',
      { timeout: 120_000 },
      async () => {
        const ssl = trusted()
        const secret = await checked('TOKENS', { ssl, sasl: { ...byClient(), clientSecret: 'Canary-7Pass' } })
        expect(secret).toMatch(
          /answers 401: invalid_client, who are you; Correct clientId, clientSecret and scope/,
        )
        expect(secret).not.toContain('Canary')
        const away = await checked('TOKENS', {
          ssl,
          sasl: { ...byClient(), tokenEndpoint: 'https://127.0.0.1:1/token' },
        })
        expect(away).toMatch(/ECONNREFUSED.*; .*sinks\.kafka\.sasl\.tokenEndpoint/)
        const token = secure.tokens.signed(-60)
        expect(await checked('TOKENS', { ssl, sasl: { mechanism: 'oauthbearer', token } })).toMatch(
          /^failed: the broker refuses the login: .*\(token\)/,
        )
      },
    )

    it('R75: reads a token from its file at each login', { timeout: 120_000 }, async () => {
      const tokenFile = join(tempDir(), 'token')
      writeFileSync(tokenFile, `${secure.tokens.signed(-60)}\n`)
      const topic = ownTopic()
      const sasl = { mechanism: 'oauthbearer', tokenFile }
      const { sink, accept } = kafkaSink(secure.at('TOKENS'), topic, { ssl: trusted(), sasl: sasl as never })
      ended.push(() => sink.stop(0))
      sink.start()
      accept(detectionsMessage())
      await until('refused', () => told(sink.health.reason, /refuses the login/), 30_000)
      writeFileSync(tokenFile, secure.tokens.signed(600))
      await until('delivered', () => sink.health.delivered === 1, 60_000)
    })
  },
)
