import { once } from 'node:events'
import { createServer } from 'node:net'
import { delay } from '../lifecycle/delay.js'
import { ListenError, PortInUseError } from './errors.js'

const pauseMs = 100

/** The code of what went wrong, such as `EADDRINUSE`; `undefined` when a listener could be opened. It is closed again. */
export async function listenProblem(host: string, port: number): Promise<string | undefined> {
  const server = createServer()
  try {
    server.listen(port, host)
    await once(server, 'listening')
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  } finally {
    server.close()
  }
}

/**
 * Resolves when another process could listen for gRPC there, which is known before that process starts.
 *
 * @param withinMs - how long to wait for a port that is taken: the process of a service that was killed ends after it.
 * @param signal - ends the wait, with its reason.
 * @throws PortInUseError, ListenError
 */
export async function grpcPortFree(
  host: string,
  port: number,
  withinMs: number,
  signal: AbortSignal,
): Promise<void> {
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
  for (let leftMs = withinMs; ; leftMs -= pauseMs) {
    const problem = await listenProblem(host, port)
    if (problem === undefined) return
    if (problem !== 'EADDRINUSE') throw new ListenError(address, problem)
    if (leftMs <= 0) throw new PortInUseError(address, 'grpcPort', problem)
    if (!(await delay(pauseMs, signal))) throw signal.reason
  }
}
