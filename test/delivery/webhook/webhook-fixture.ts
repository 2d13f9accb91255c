import { onTestFinished } from 'vitest'
import { webhookSchema } from '../../../src/config/webhook.js'
import { createWebhookSink } from '../../../src/delivery/webhook/webhook-sink.js'
import { AddressPolicy } from '../../../src/lifecycle/address-policy.js'
import { sinkRig, WebhookReceiver } from '../../support/sinks.js'
import { unstoredQueue } from '../../support/unstored-queue.js'

/** A sink to a URL, ended with the test. @param settings - of `sinks.webhook`, as a person writes them */
export function webhookSink(
  settings: Readonly<Record<string, unknown>>,
  policy = new AddressPolicy(),
  queue = unstoredQueue(),
) {
  const config = webhookSchema.parse(settings)
  const webhook = { name: config.name ?? 'webhook', path: ['sinks', 'webhook'], config }
  const rig = sinkRig((metrics, log) =>
    createWebhookSink({ webhook, userAgent: 'gantry/test', policy, log }, queue, metrics),
  )
  onTestFinished(() => rig.sink.stop(0))
  return rig
}

/** A receiver that is ended with the test. */
export async function webhookReceiver(
  tls?: Parameters<typeof WebhookReceiver.start>[0],
): Promise<WebhookReceiver> {
  const receiver = await WebhookReceiver.start(tls)
  onTestFinished(() => receiver.stop())
  return receiver
}
