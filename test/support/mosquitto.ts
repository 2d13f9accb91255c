import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt'
import { ServerProcess } from './child.js'
import { freePort } from './free-port.js'
import { LocalServer } from './local-server.js'
import { until } from './until.js'

/** Debian puts it where only root looks for programs. */
const program = ['mosquitto', '/usr/sbin/mosquitto'].find(
  (name) => spawnSync(name, ['-h'], { stdio: 'ignore' }).error === undefined,
)

/** Why no broker of MQTT can be started here, or undefined when one can. Skipping is loud, and in CI it is a failure. */
export function mosquittoMissing(): string | undefined {
  if (program !== undefined) return undefined
  const reason = 'no mosquitto on the PATH (Debian: mosquitto)'
  if (process.env['CI']) throw new Error(`MQTT tests must run in CI: ${reason}`)
  process.stderr.write(`\nSKIPPED: tests against a real MQTT broker: ${reason}\n`)
  return reason
}

/** A message as a reader got it. */
export type Heard = Readonly<{
  topic: string
  payload: string
  retain: boolean
  contentType: string | undefined
  userProperties: Readonly<Record<string, unknown>>
}>

/** A real broker on a loopback port of its own, without persistence. */
export class Mosquitto extends LocalServer {
  readonly #clients: MqttClient[] = []

  private constructor(
    folder: string,
    port: number,
    readonly lines: readonly string[],
  ) {
    super(folder, port)
  }

  /** Prepares folder and port without starting. @param lines - of its configuration, behind those of the listener; without any, everybody may do all. */
  static async prepare(lines: readonly string[] = ['allow_anonymous true']): Promise<Mosquitto> {
    return new Mosquitto(await mkdtemp(join(tmpdir(), 'gantry-mosquitto-')), await freePort(), lines)
  }

  static async start(lines?: readonly string[]): Promise<Mosquitto> {
    const broker = await Mosquitto.prepare(lines)
    await broker.start()
    return broker
  }

  get url(): string {
    return `mqtt://127.0.0.1:${this.port}`
  }

  override async start(): Promise<void> {
    const config = join(this.folder, 'mosquitto.conf')
    const user = process.getuid?.() === 0 ? ['user root'] : []
    const base = [...user, `listener ${this.port} 127.0.0.1`, 'persistence false', 'log_type all']
    await writeFile(config, `${[...base, ...this.lines].join('\n')}\n`)
    const log = join(this.folder, 'mosquitto.log')
    this.process = ServerProcess.start(program ?? 'mosquitto', ['-c', config], log)
    await until('mosquitto', async () => (await readFile(log, 'utf8')).includes('running'))
  }

  /** A login for `password_file`. @returns the file */
  async passwordFile(user: string, password: string): Promise<string> {
    const file = join(this.folder, 'passwords')
    const { status, stderr } = spawnSync('mosquitto_passwd', ['-b', '-c', file, user, password])
    if (status !== 0) throw new Error(`mosquitto_passwd: ${String(stderr)}`)
    return file
  }

  /** Hears everything under a topic from now on, and what is retained. */
  async hear(topic = '#', options: IClientOptions = {}): Promise<Heard[]> {
    const client = await connectAsync(this.url, { protocolVersion: 5, ...options })
    this.#clients.push(client)
    client.on('error', () => undefined)
    const heard: Heard[] = []
    client.on('message', (name, payload, { retain, properties }) => {
      const { contentType, userProperties = {} } = properties ?? {}
      heard.push({
        topic: name,
        payload: payload.toString(),
        retain,
        contentType,
        userProperties: { ...userProperties },
      })
    })
    await client.subscribeAsync(topic, { qos: 1 })
    return heard
  }

  override async stop(): Promise<void> {
    for (const client of this.#clients) client.end(true)
    await super.stop()
  }
}
