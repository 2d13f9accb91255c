import { type Admin, logLevel } from 'kafkajs'
import type { KafkaConnection } from '../../config/outputs.js'
import { connectionAdvice } from '../../delivery/kafka/kafka-advice.js'
import { KafkaClients } from '../../delivery/kafka/kafka-client.js'
import { SocketGuard } from '../../delivery/kafka/socket-guard.js'
import { GantryError } from '../../errors.js'
import { atMost } from '../../lifecycle/delay.js'
import { silentLog } from '../../lifecycle/log.js'
import type { Finding } from '../findings.js'

const limitMs = 8_000

/**
 * Asks one broker of a list.
 *
 * @param setting - where the section of the brokers stands.
 * @returns what is wrong where it does not answer, with what to do; never throws.
 */
export async function askBroker(
  broker: string,
  { connection, setting }: Readonly<{ connection: KafkaConnection; setting: string }>,
  subject: string,
  ask: (admin: Admin) => Promise<Finding>,
): Promise<Finding> {
  const guard = new SocketGuard()
  const answer = async () => {
    const kafka = await new KafkaClients(connection, silentLog(), setting).create(guard, {
      brokers: [broker],
      connectionTimeout: 2_000,
      authenticationTimeout: 5_000,
      requestTimeout: 2_000,
      retry: { retries: 0 },
      logLevel: logLevel.NOTHING,
    })
    const admin = kafka.admin()
    try {
      await admin.connect()
      return await ask(admin)
    } finally {
      void admin.disconnect().catch(() => undefined)
    }
  }
  const failed = (detail: string, fix?: string): Finding => ({
    subject,
    state: 'failed',
    detail,
    fix: fix ?? `start the broker, or correct ${setting}.brokers, ssl and sasl`,
  })
  try {
    return (await atMost(limitMs, answer())) ?? failed(`no answer within ${limitMs} ms`)
  } catch (error) {
    if (error instanceof GantryError) return failed(error.message, error.hint)
    const { reason, fix } = connectionAdvice(error, guard.failure, connection, setting) ?? {}
    return failed(reason ?? (error instanceof Error ? error.message : String(error)), fix)
  } finally {
    guard.close()
  }
}

/** A secret that anybody on the way can read. */
export function openSecret({ sasl, ssl }: KafkaConnection, setting: string): Finding[] {
  const subject = 'kafka login'
  if (/^http:/i.test(sasl?.tokenEndpoint ?? ''))
    return [
      {
        subject,
        state: 'warning',
        detail: `clientSecret travels without TLS to ${setting}.sasl.tokenEndpoint`,
        fix: 'give it an https:// URL',
      },
    ]
  const isReadable = ssl === false && (sasl?.mechanism === 'plain' || sasl?.mechanism === 'oauthbearer')
  return isReadable
    ? [
        {
          subject,
          state: 'warning',
          detail: 'it travels without TLS',
          fix: `set ${setting}.ssl, or a scram mechanism`,
        },
      ]
    : []
}
