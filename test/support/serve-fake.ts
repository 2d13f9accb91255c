import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { serverSchema } from '../../src/config/server.js'
import { createHttpServer, type HttpServer, type ServerSettings } from '../../src/api/http-server.js'
import { FakeGantry } from './fake-gantry.js'

export type Served = Readonly<{ server: HttpServer; gantry: FakeGantry; url: string; metricsUrl: string }>

/** The real server on free loopback ports in front of a {@link FakeGantry}; stopped when the test ends. */
export async function serveFake(
  settings: Partial<ServerSettings> = {},
  more: Readonly<{ webRoot?: string; gantry?: FakeGantry; log?: (line: string) => void }> = {},
): Promise<Served> {
  const gantry = more.gantry ?? new FakeGantry(settings)
  const log =
    more.log === undefined ? pino({ level: 'silent' }) : pino({ level: 'debug' }, { write: more.log })
  const server = createHttpServer({
    gantry,
    settings: { ...serverSchema.parse({ httpPort: 0, metricsPort: 0 }), ...settings },
    log,
    ...(more.webRoot === undefined ? {} : { webRoot: more.webRoot }),
  })
  await server.start(new AbortController().signal)
  onTestFinished(() => server.stop(1_000))
  const { address } = server
  if (address === undefined) throw new Error('the server has no address')
  const at = (port: number): string => `http://127.0.0.1:${port}`
  return { server, gantry, url: at(address.httpPort), metricsUrl: at(address.metricsPort) }
}
