import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config/config-error.js'
import { loadPipeline } from '../../src/config/load.js'
import { printConfig } from '../../src/config/print.js'
import { mqttOf, webhooksOf } from '../../src/config/sinks.js'
import { tempDir } from '../support/temp-dir.js'

function load(sinks: unknown, env: Record<string, string> = {}) {
  const file = join(tempDir(), 'pipeline.yaml')
  writeFileSync(file, JSON.stringify({ apiVersion: 'gantry/v1', sinks }, undefined, 2))
  return { file, ...loadPipeline(file, { env }) }
}

function problemsOf(sinks: unknown, env: Record<string, string> = {}): string[] {
  try {
    load(sinks, env)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ path, message }) => `${path}: ${message}`)
  }
}

const url = 'https://hooks.example/gantry'
const broker = 'mqtt://broker.example:1883'

describe('settings of sinks', () => {
  it('are one section, or a list of sections with a name each', () => {
    const one = load({ webhook: { url }, mqtt: { url: broker } }).config.sinks
    expect([...webhooksOf(one), ...mqttOf(one)].map(({ name, path }) => [name, path])).toEqual([
      ['webhook', ['sinks', 'webhook']],
      ['mqtt', ['sinks', 'mqtt']],
    ])
    const two = load({ webhook: [{ url }, { url, name: 'alarm', filter: { labels: ['head'] } }] }).config
      .sinks
    expect(
      webhooksOf(two).map(({ name, path, config }) => [name, path.at(-1), config.filter.labels]),
    ).toEqual([
      ['webhook', 0, []],
      ['alarm', 1, ['head']],
    ])
  })

  it('come from the environment too, secrets from files', () => {
    const secret = join(tempDir(), 'secret')
    writeFileSync(secret, 'from a file\n')
    const { config } = load(undefined, {
      GANTRY__SINKS__WEBHOOK__URL: url,
      GANTRY__SINKS__WEBHOOK__SECRET_FILE: secret,
      GANTRY__SINKS__WEBHOOK__HEADERS: '{"authorization": "Bearer t"}',
      GANTRY__SINKS__WEBHOOK__FILTER__MAX_PER_MINUTE: '6',
      GANTRY__SINKS__MQTT__0__URL: broker,
      GANTRY__SINKS__MQTT__0__HOME_ASSISTANT: 'true',
    })
    expect(webhooksOf(config.sinks)[0]?.config).toMatchObject({
      url,
      secret: 'from a file',
      headers: { authorization: 'Bearer t' },
      filter: { maxPerMinute: 6 },
    })
    expect(mqttOf(config.sinks)[0]?.config).toMatchObject({ url: broker, homeAssistant: true })
  })

  it('have names that differ', () => {
    expect(problemsOf({ webhook: [{ url }, { url }] })).toEqual([
      'sinks.webhook[1].name: missing: sinks.webhook[0] is called "webhook" already, and names of sinks must differ',
    ])
    expect(problemsOf({ webhook: { url, name: 'plant' }, mqtt: { url: broker, name: 'plant' } })).toEqual([
      'sinks.mqtt.name: "plant" is the name of sinks.webhook already; names of sinks must differ',
    ])
    expect(problemsOf({ kafka: { brokers: ['k:9092'] }, mqtt: { url: broker, name: 'kafka' } })).toEqual([
      'sinks.mqtt.name: "kafka" is the name of sinks.kafka already; names of sinks must differ',
    ])
  })

  it.each([
    [{ webhook: { url: 'ftp://a' } }, 'sinks.webhook.url: must be an http:// or https:// URL'],
    [{ webhook: { url: 'https://u:p@a/' } }, 'sinks.webhook.url: must hold no login'],
    [{ webhook: { url: 'https://a/#x' } }, 'sinks.webhook.url: must not have a part behind "#"'],
    [{ webhook: {} }, 'sinks.webhook.url: missing'],
    [{ webhook: [{ url, timeoutMs: 1 }] }, 'sinks.webhook[0].timeoutMs: must be at least 100'],
    [{ webhook: { url, sekret: 'x' } }, 'sinks.webhook.sekret: unknown key'],
    [{ webhook: { url, secret: 'whsec_not base64' } }, 'sinks.webhook.secret: begins with whsec_'],
    [{ webhook: { url, secret: ['a', 'b', 'c'] } }, 'sinks.webhook.secret: must have at most 2 entries'],
    [{ webhook: { url, headers: { 'Webhook-Id': '1' } } }, 'is a header that the service writes itself'],
    [{ webhook: { url, headers: { a: 'b\r\nc: d' } } }, 'sinks.webhook.headers.a: must be one line'],
    [{ webhook: { url: 'http://a/', tls: { ca: 'x' } } }, 'sinks.webhook.tls: is for an https:// URL'],
    [{ webhook: { url, tls: { ca: 'absent.pem' } } }, 'sinks.webhook.tls.ca: '],
    [{ webhook: [{ url, tls: { ca: 'absent.pem' } }] }, 'sinks.webhook[0].tls.ca: '],
    [
      { webhook: { url, filter: { maxPerMinute: 0 } } },
      'sinks.webhook.filter.maxPerMinute: must be at least 1',
    ],
    [
      { kafka: { brokers: ['k:9092'], filter: { minScore: 2 } } },
      'sinks.kafka.filter.minScore: must be at most 1',
    ],
    [{ mqtt: { url: 'http://a' } }, 'sinks.mqtt.url: must be an mqtt://host or mqtts://host URL'],
    [{ mqtt: { url: 'mqtt://u:p@a' } }, 'sinks.mqtt.url: must hold no login'],
    [{ mqtt: { url: 'mqtt://a/topic' } }, 'sinks.mqtt.url: must end behind the port'],
    [{ mqtt: { url: broker, password: 'x' } }, 'sinks.mqtt.password: needs username beside it'],
    [{ mqtt: { url: broker, topicPrefix: 'a/#' } }, 'sinks.mqtt.topicPrefix: must be parts of a topic'],
    [{ mqtt: { url: broker, topicPrefix: '/a' } }, 'sinks.mqtt.topicPrefix: must be parts of a topic'],
    [{ mqtt: { url: broker, tls: { ca: 'x' } } }, 'sinks.mqtt.tls: is for an mqtts:// URL'],
    [{ mqtt: 'mqtt://a' }, 'sinks.mqtt: must be a section of settings or a list, not a text'],
  ])('names what is wrong: %j', (sinks, words) => {
    expect(problemsOf(sinks).join('\n')).toContain(words)
  })

  it('S36: show no secret, in print or in complaints', () => {
    const secrets = ['wh53cret-one', 'wh53cret-two', 't0ken-of-header', 'p4ss-of-mqtt', 't0ken-in-query']
    const { config } = load({
      webhook: [
        {
          url: `${url}?token=${secrets[4]}`,
          secret: [secrets[0], secrets[1]],
          headers: { 'X-Mine': secrets[2] },
        },
      ],
      mqtt: { url: broker, username: 'u', password: secrets[3] },
    })
    const printed = printConfig(config)
    for (const secret of secrets) expect(printed).not.toContain(secret)
    const told = [
      ...problemsOf({ webhook: { url: 'mailto:wh53cret', secret: 'whsec_wh53cret!' } }),
      ...problemsOf({ webhook: { url, secret: '${wh53cret.x}', headers: { a: '${wh53cret y}' } } }),
      ...problemsOf({ mqtt: { url: 'mqtt://u:wh53cret@h', username: 'a', password: 53 } }),
    ].join('\n')
    expect(told).not.toContain('wh53cret')
    expect(told.split('\n').length).toBeGreaterThanOrEqual(6)
  })
})
