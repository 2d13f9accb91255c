import { secretKey } from '../../config/webhook.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import { formatPath } from '../../config/setting-path.js'
import { mqttOf, type SinksConfig, webhooksOf } from '../../config/sinks.js'
import { MqttLinks } from '../../delivery/mqtt/mqtt-link.js'
import { MqttTopics } from '../../delivery/mqtt/mqtt-topics.js'
import { RetainedTopics } from '../../delivery/mqtt/retained-topics.js'
import type { RecordLinks } from '../../delivery/record-link.js'
import { webhookSecrets, WebhookLinks } from '../../delivery/webhook/webhook-link.js'
import { AddressPolicy } from '../../lifecycle/address-policy.js'
import { silentLog } from '../../lifecycle/log.js'
import type { Finding } from '../findings.js'

const limitMs = 8_000
/** Of Standard Webhooks. */
const leastKeyBytes = 24

type Place = Readonly<{ subject: string; setting: string }>
type Probed = Pick<RecordLinks, 'failureOf'> & Readonly<{ probe: (signal: AbortSignal) => Promise<void> }>

/** Connects to each webhook and each broker of MQTT, and logs in there. Nothing is posted or published. */
export async function checkSinks(
  { sinks, cameras, cameraNetworks }: Pick<PipelineConfig, 'sinks' | 'cameras' | 'cameraNetworks'>,
  network: boolean,
): Promise<Finding[]> {
  const policy = new AddressPolicy(cameraNetworks)
  const log = silentLog()
  const ids = new Set(cameras.map(({ id }) => id))
  const webhooks = webhooksOf(sinks).map(async (webhook) => {
    const place = placeOf('webhook', webhook.name, webhook.config.url, formatPath(webhook.path))
    const links = new WebhookLinks({ webhook, userAgent: '', policy, log })
    return [
      await reached(place, links, network, 'takes connections'),
      ...webhookWarnings(place, webhook.config),
    ]
  })
  const brokers = mqttOf(sinks).map(async (mqtt) => {
    const { url, topicPrefix, password } = mqtt.config
    const place = placeOf('mqtt', mqtt.name, url, formatPath(mqtt.path))
    const links = new MqttLinks({ mqtt, policy, log }, new MqttTopics(topicPrefix), new RetainedTopics())
    const found = await reached(place, links, network, 'takes our connection')
    if (password === undefined || /^mqtts:/i.test(url)) return [found]
    return [
      found,
      warning(place.subject, 'the login travels without TLS', `set ${place.setting}.url to mqtts://`),
    ]
  })
  const found = await Promise.all([...webhooks, ...brokers])
  return [...found.flat(), ...filterWarnings(sinks, ids)]
}

function placeOf(kind: string, name: string, url: string, setting: string): Place {
  const { host } = new URL(url)
  return { subject: name === kind ? `${kind} ${host}` : `${kind} ${name} ${host}`, setting }
}

async function reached(
  { subject, setting }: Place,
  links: Probed,
  network: boolean,
  well: string,
): Promise<Finding> {
  if (!network) return { subject, state: 'skipped', detail: 'offline' }
  try {
    await links.probe(AbortSignal.timeout(limitMs))
    return { subject, state: 'ok', detail: well }
  } catch (error) {
    const { reason } = links.failureOf(error)
    const [detail = reason, ...fixes] = reason.split('; ')
    const fix = fixes.length > 0 ? fixes.join('; ') : `start what answers there, or correct ${setting}.url`
    return { subject, state: 'failed', detail, fix }
  }
}

function webhookWarnings(
  { subject, setting }: Place,
  config: ReturnType<typeof webhooksOf>[number]['config'],
): Finding[] {
  const secrets = webhookSecrets(config)
  const isShort = secrets.some((secret) => secretKey(secret).length < leastKeyBytes)
  const isOpen = /^http:/i.test(config.url) && Object.keys(config.headers).length > 0
  return [
    ...(secrets.length === 0
      ? [
          warning(
            subject,
            'its receiver cannot tell who posts: there is no signature',
            `set ${setting}.secret`,
          ),
        ]
      : []),
    ...(isShort
      ? [
          warning(
            subject,
            `the key of its signature has less than ${leastKeyBytes} bytes`,
            `set ${setting}.secret to whsec_ and what "openssl rand -base64 32" prints`,
          ),
        ]
      : []),
    ...(isOpen
      ? [warning(subject, 'its headers travel without TLS', `set ${setting}.url to an https:// URL`)]
      : []),
  ]
}

/** Cameras that nobody has yet: they may come by the API, or be a typing error. */
function filterWarnings(sinks: SinksConfig, ids: ReadonlySet<string>): Finding[] {
  const filters = [
    ...(sinks.kafka === undefined ? [] : [{ path: ['sinks', 'kafka'], config: sinks.kafka }]),
    ...webhooksOf(sinks),
    ...mqttOf(sinks),
  ]
  return filters.flatMap(({ path, config: { filter } }) => {
    const unknown = filter.cameras.filter((id) => id !== '*' && !ids.has(id))
    if (unknown.length === 0) return []
    const setting = formatPath([...path, 'filter', 'cameras'])
    const fix = 'correct the ids, or add the cameras by the API'
    return [
      warning('sinks', `${setting} names cameras that this file does not have: ${unknown.join(', ')}`, fix),
    ]
  })
}

function warning(subject: string, detail: string, fix: string): Finding {
  return { subject, state: 'warning', detail, fix }
}
