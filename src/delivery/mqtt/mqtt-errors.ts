import type { Refusal } from '../refusal.js'

/** Reason codes of MQTT 5 (2.4) that are a word on the record itself; others pass. */
const refusals: Readonly<Record<number, string>> = {
  0x87: 'NOT_AUTHORIZED',
  0x90: 'TOPIC_NAME_INVALID',
  0x95: 'PACKET_TOO_LARGE',
  0x99: 'PAYLOAD_FORMAT_INVALID',
}

/** The broker will never take this record. */
export class MqttRefusal extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.detail)
    this.name = 'MqttRefusal'
  }
}

/** What an error of a publication says against its record; undefined when nothing. */
export function refusalOf(error: unknown, topic: string): MqttRefusal | undefined {
  const code = codeOf(error)
  const reason = code === undefined ? undefined : refusals[code]
  if (reason === undefined || !(error instanceof Error)) return undefined
  return new MqttRefusal({
    reason,
    detail: `the broker refuses ${topic}: ${error.message.replace(/^Publish error: /, '')}`,
    certain: true,
  })
}

/** Reason code of MQTT, of an error of the client library. */
export function codeOf(error: unknown): number | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : undefined
}

/** What to do about a connection that the broker refused or ended with a reason code. */
export function adviceFor(code: number, setting: string): string {
  switch (code) {
    // Of MQTT 3: a broker that knows no 5 answers so.
    case 1:
    case 0x84:
      return 'It does not speak MQTT 5: use a broker that does.'
    case 0x85:
      return `Set ${setting}.clientId to one that the broker takes.`
    case 4:
    case 5:
    case 0x86:
    case 0x87:
      return `Correct ${setting}.username and ${setting}.password, and what the broker allows them.`
    case 0x8e:
      return `Another client has our id: give each its own ${setting}.clientId, or leave it out.`
    default:
      return 'Look at the log of the broker.'
  }
}
