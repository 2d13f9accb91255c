import { once } from 'node:events'
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { fits, usualSocketBases } from '../lifecycle/temporary-folder.js'
import { createPrivateFolder, privateFolderPrefix, socketFolderOf } from './private-folder.js'

const socketName = 'health.sock'

const tellingSchema = z.object({
  name: z.string(),
  version: z.string(),
  pid: z.number().int(),
  /** Absolute path of the pipeline file, or `<stdin>`; null without one. */
  pipeline: z.string().nullable(),
  httpUrl: z.string(),
  metricsUrl: z.string(),
  ready: z.boolean(),
  reasons: z.array(z.string()),
  /** Why clients find nobody on the ports; null where they are served. */
  closed: z.string().nullable(),
})

/** What a service of this machine says of itself. */
export type HealthTelling = Readonly<z.infer<typeof tellingSchema>>

/**
 * Where commands of the same user ask a running service how it stands, whatever its ports, its TLS and its token are: a Unix socket in a
 * folder for this user alone.
 */
export class HealthSocket {
  private constructor(
    readonly server: Server,
    readonly folders: ReadonlySet<string>,
  ) {}

  /** @param base - folder of temporary files. @throws TemporaryFolderError; what listening throws */
  static async open(told: () => HealthTelling, base = tmpdir()): Promise<HealthSocket> {
    const folder = createPrivateFolder(base)
    const own = socketFolderOf(folder, socketName)
    const server = createServer((_, answer) => {
      answer.setHeader('content-type', 'application/json').end(JSON.stringify(told()))
    })
    const socket = new HealthSocket(server, new Set([folder, own]))
    try {
      await once(server.listen(join(own, socketName)), 'listening')
    } catch (error) {
      socket.close()
      throw error
    }
    // It keeps nothing alive.
    server.unref()
    return socket
  }

  /** Idempotent. */
  close(): void {
    this.server.close()
    this.server.closeAllConnections()
    for (const folder of this.folders) rmSync(folder, { recursive: true, force: true })
  }
}

/** One that answers, or does not within its time though its process is there. */
export type AskedService = Readonly<{ telling: HealthTelling } | { silent: string }>

/**
 * Asks all services of this user that have the same temporary folder.
 *
 * @param withinMs - for the answer of each.
 */
export async function askServices(
  withinMs: number,
  bases = possibleBases(),
): Promise<readonly AskedService[]> {
  const asked = await Promise.all(bases.flatMap(socketsIn).map((path) => ask(path, withinMs)))
  return asked.filter((one) => one !== undefined)
}

/** Where a socket lies that has too long a path in the temporary folder depends on what could be written then. */
function possibleBases(): readonly string[] {
  const isShort = fits(join(tmpdir(), `${privateFolderPrefix}XXXXXX`, socketName))
  return isShort ? [tmpdir()] : [...new Set(usualSocketBases())]
}

/** Of this user alone: anybody may put something into /tmp. */
function socketsIn(base: string): readonly string[] {
  try {
    return readdirSync(base)
      .filter((name) => name.startsWith(privateFolderPrefix))
      .map((name) => join(base, name))
      .filter((folder) => statSync(folder, { throwIfNoEntry: false })?.uid === process.getuid?.())
      .map((folder) => join(folder, socketName))
      .filter((path) => existsSync(path))
  } catch {
    return []
  }
}

/** Undefined where nobody listens any more. */
async function ask(socketPath: string, withinMs: number): Promise<AskedService | undefined> {
  try {
    const signal = AbortSignal.timeout(withinMs)
    const body = await new Promise<string>((resolve, reject) => {
      const asked = request(
        { socketPath, path: '/', signal },
        (answer) => void text(answer).then(resolve, reject),
      )
      asked.once('error', reject).end()
    })
    return { telling: tellingSchema.parse(JSON.parse(body)) }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ECONNREFUSED' || code === 'ENOENT') return undefined
    return {
      silent:
        code === 'ABORT_ERR'
          ? `it does not answer within ${withinMs / 1_000} s (${dirname(socketPath)})`
          : `it answers what is not understood, as one of another version (${dirname(socketPath)})`,
    }
  }
}
