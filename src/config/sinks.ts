import { z } from 'zod'
import { mqttSchema, type MqttConfig } from './mqtt.js'
import { kafkaSchema } from './outputs.js'
import { formatPath, type SettingPath } from './setting-path.js'
import { webhookSchema, type WebhookConfig } from './webhook.js'

const maxOfKind = 32

/** One section, or a list of them: most need one, and no name for it. */
function oneOrMore<T extends z.ZodType>(schema: T) {
  return z.union([schema, z.array(schema).max(maxOfKind)])
}

export const sinksSchema = z.strictObject({
  kafka: kafkaSchema.optional(),
  webhook: oneOrMore(webhookSchema)
    .optional()
    .describe('Where records are posted to: one section, or a list of sections with a `name` each.'),
  mqtt: oneOrMore(mqttSchema)
    .optional()
    .describe('Brokers of MQTT 5: one section, or a list of sections with a `name` each.'),
})
export type SinksConfig = Readonly<z.infer<typeof sinksSchema>>

/** A sink with what it is called, and where it stands in the settings. */
export type NamedSink<T> = Readonly<{ name: string; path: SettingPath; config: T }>

export function webhooksOf({ webhook }: Pick<SinksConfig, 'webhook'>): readonly NamedSink<WebhookConfig>[] {
  return named('webhook', webhook)
}

export function mqttOf({ mqtt }: Pick<SinksConfig, 'mqtt'>): readonly NamedSink<MqttConfig>[] {
  return named('mqtt', mqtt)
}

function named<T extends Readonly<{ name?: string | undefined }>>(
  kind: 'webhook' | 'mqtt',
  sections: T | readonly T[] | undefined,
): readonly NamedSink<T>[] {
  if (sections === undefined) return []
  if (!isList(sections)) return [{ name: sections.name ?? kind, path: ['sinks', kind], config: sections }]
  return sections.map((config, index) => ({
    name: config.name ?? kind,
    path: ['sinks', kind, index],
    config,
  }))
}

function isList<T>(sections: T | readonly T[]): sections is readonly T[] {
  return Array.isArray(sections)
}

/** Of all of them, in their order. */
export function sinkNames(sinks: SinksConfig): string[] {
  const others = [...webhooksOf(sinks), ...mqttOf(sinks)].map(({ name }) => name)
  return [...(sinks.kafka === undefined ? [] : ['kafka']), ...others]
}

/** Sinks that have the name of an earlier one. */
export function sharedSinkNames(sinks: SinksConfig): { path: (string | number)[]; message: string }[] {
  const first = new Map<string, string>(sinks.kafka === undefined ? [] : [['kafka', 'sinks.kafka']])
  return [...webhooksOf(sinks), ...mqttOf(sinks)].flatMap(({ name, path, config }) => {
    const other = first.get(name)
    first.set(name, other ?? formatPath(path))
    if (other === undefined) return []
    const message =
      config.name === undefined
        ? `missing: ${other} is called "${name}" already, and names of sinks must differ`
        : `"${name}" is the name of ${other} already; names of sinks must differ`
    return [{ path: [...path, 'name'], message }]
  })
}
