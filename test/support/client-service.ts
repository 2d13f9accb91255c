import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { clientRepository } from './model-repository.js'
import { TestService } from './service.js'
import { until } from './until.js'

/** A running service with models for clients: those of {@link clientRepository} and those of this repository. */
export class ClientService implements AsyncDisposable {
  private constructor(
    readonly service: TestService,
    /** Addresses as `host:port`. */
    readonly http: string,
    readonly grpc: string,
    readonly metrics: string,
    readonly repository: ReturnType<typeof clientRepository>,
  ) {}

  static async start(env: NodeJS.ProcessEnv = {}): Promise<ClientService> {
    const repository = clientRepository()
    const service = await TestService.start({
      env,
      pipeline: {
        models: {
          repository: [repository.models, join(import.meta.dirname, '../../models')],
          control: 'explicit',
          load: ['*'],
        },
        modelServer: { enabled: true, trace: { dir: repository.traces } },
      },
    })
    await until('models ready', async () => (await fetch(`${service.url}/v2/health/ready`)).ok, 120_000)
    const grpcPort = await until('gRPC', async () => (await service.ready()).modelServer?.grpcPort, 30_000)
    const [http, grpc, metrics] = [service.httpPort, grpcPort, service.metricsPort].map(
      (port) => `127.0.0.1:${port}`,
    )
    return new ClientService(service, http ?? '', grpc ?? '', metrics ?? '', repository)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]()
    rmSync(this.repository.dir, { recursive: true, force: true })
  }
}
