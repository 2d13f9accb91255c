import { Kafka, type KafkaConfig as ClientOptions, type SASLOptions } from 'kafkajs'
import type { KafkaLogin } from '../../config/kafka-login.js'
import type { KafkaConnection } from '../../config/outputs.js'
import { ClientTls } from '../../lifecycle/client-tls.js'
import type { Log } from '../../lifecycle/log.js'
import type { SocketGuard } from './socket-guard.js'
import { TokenProvider } from './token-provider.js'

type Tuning = Pick<
  ClientOptions,
  | 'connectionTimeout'
  | 'authenticationTimeout'
  | 'requestTimeout'
  | 'retry'
  | 'logLevel'
  | 'logCreator'
  | 'brokers'
>

/** Clients of the brokers that a section of the settings names: how they connect and log in. */
export class KafkaClients {
  readonly #tls: ClientTls
  readonly #tokens: TokenProvider | undefined

  constructor(
    readonly config: KafkaConnection,
    log: Log,
    /** Where the section stands in the settings. */
    setting = 'sinks.kafka',
  ) {
    this.#tls = new ClientTls(config.ssl, `${setting}.ssl`, log)
    if (config.sasl?.mechanism === 'oauthbearer') this.#tokens = new TokenProvider(config.sasl, this.#tls)
  }

  /**
   * @param guard - gets the sockets
   * @throws InternalError where PEM files have become unusable since the settings were read
   */
  async create(guard: SocketGuard, tuning: Partial<Tuning>): Promise<Kafka> {
    const { brokers, clientId, sasl } = this.config
    const ssl = await this.#tls.options()
    return new Kafka({
      brokers: [...brokers],
      clientId,
      ssl: ssl ?? false,
      ...(sasl !== undefined && { sasl: this.#login(sasl) }),
      socketFactory: guard.factory,
      ...tuning,
    })
  }

  /** What was kept of the last login is of no use. */
  forgetLogin(): void {
    this.#tokens?.forget()
  }

  #login({ mechanism, username = '', password = '' }: KafkaLogin): SASLOptions {
    if (mechanism !== 'oauthbearer') return { mechanism, username, password }
    const oauthBearerProvider = async () => ({ value: (await this.#tokens?.token()) ?? '' })
    return { mechanism, oauthBearerProvider }
  }
}

/** Texts of a login that no line may show. */
export function loginSecrets(sasl: KafkaConnection['sasl']): readonly string[] {
  const { password, clientSecret, token } = sasl ?? {}
  return [password, clientSecret, token].filter((text) => text !== undefined && text !== '') as string[]
}
