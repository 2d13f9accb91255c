import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { createKserveApp } from '../../src/api/kserve/kserve-app.js'
import { serveRepository } from './real-repository.js'
import { redRepository } from './red-pictures.js'
import { silentLog } from './silent-log.js'

/** A model server with `red` of {@link redRepository} by HTTP on a free port; stopped when the test ends. */
export async function servedRed(): Promise<Readonly<{ url: string; stop: () => Promise<void> }>> {
  const server = await serveRepository(redRepository())
  const app = createKserveApp(server, { maxBodyBytes: 16_000_000, log: silentLog() })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const stop = async () => {
    app.server.closeAllConnections()
    await app.close()
  }
  onTestFinished(stop)
  return { url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`, stop }
}
