import type { KafkaPlace } from '../api/types.js'
import { shellWord, tokenHeader } from './shell.js'

/** A way to get at what was found: a command for a shell, and what is to be known of it. */
export type DataCommand = Readonly<{
  id: 'curl' | 'websocket' | 'kafka'
  title: string
  note: string
  text: string
}>

export type DataSource = Readonly<{
  /** URL of the service, with `/` at its end. */
  base: string
  wantsToken: boolean
  kafka: KafkaPlace | null
}>

/** How to get the data out of this very service. */
export function dataCommands(source: DataSource): readonly DataCommand[] {
  return [curlCommand(source), webSocketCommand(source), kafkaCommand(source)]
}

function curlCommand({ base, wantsToken }: DataSource): DataCommand {
  return {
    id: 'curl',
    title: 'curl',
    note: 'The newest five results, as JSON.',
    text: `curl -sS${tokenHeader(wantsToken)} ${shellWord(`${base}api/v1/detections?limit=5`)}`,
  }
}

/** Node has a WebSocket of its own, and where Gantry runs there is one. */
function webSocketCommand({ base, wantsToken }: DataSource): DataCommand {
  const url = JSON.stringify(`${base.replace(/^http/, 'ws')}api/v1/stream`)
  // A WebSocket has no headers: the token goes along as a sub-protocol.
  const protocols = wantsToken
    ? '["gantry.v1", "gantry.token." + Buffer.from(process.env.GANTRY_TOKEN).toString("base64url")]'
    : '"gantry.v1"'
  const subscribe = 'JSON.stringify({ type: "subscribe", cameras: ["*"], detections: true })'
  const script = [
    `const stream = new WebSocket(${url}, ${protocols})`,
    `stream.onopen = () => stream.send(${subscribe})`,
    'stream.onmessage = ({ data }) => console.log(data)',
  ].join('; ')
  return {
    id: 'websocket',
    title: 'WebSocket',
    note: 'Each result as it comes, a line each. Needs Node 22 or newer and nothing else.',
    text: `node -e ${shellWord(script)}`,
  }
}

function kafkaCommand({ kafka }: DataSource): DataCommand {
  if (kafka === null)
    return {
      id: 'kafka',
      title: 'Kafka',
      note: 'No broker is set here. Start the service with this before its command, with your broker in place of this one; in a pipeline file it is sinks: { kafka: { brokers: [...] } }.',
      text: `export GANTRY__SINKS__KAFKA__BROKERS='["127.0.0.1:9092"]'`,
    }
  const { brokers, topic, security, saslMechanism } = kafka
  const login =
    saslMechanism === null
      ? ''
      : saslMechanism === 'OAUTHBEARER'
        ? ` -X sasl.mechanisms=${saslMechanism}`
        : ` -X sasl.mechanisms=${shellWord(saslMechanism)} -X sasl.username="$KAFKA_USER" -X sasl.password="$KAFKA_PASSWORD"`
  const connect = security === 'PLAINTEXT' ? '' : ` -X security.protocol=${security}${login}`
  return {
    id: 'kafka',
    title: 'Kafka',
    note:
      'The newest ten records, then what comes: camera and result. Needs kcat (apt-get install kcat).' +
      (security === 'PLAINTEXT' ? '' : ' Certificates and logins are those of your broker.'),
    text: `kcat -C -q -b ${shellWord(brokers.join(','))} -t ${shellWord(topic)}${connect} -o -10 -f '%k %s\\n'`,
  }
}

/** Adds a camera without the page. */
export function addCameraCommand(
  { base, wantsToken }: Pick<DataSource, 'base' | 'wantsToken'>,
  url: string,
): string {
  const body = JSON.stringify({ id: 'my-camera', url, persist: true })
  return `curl -sS${tokenHeader(wantsToken)} ${shellWord(`${base}api/v1/cameras`)} -H 'content-type: application/json' -d ${shellWord(body)}`
}
