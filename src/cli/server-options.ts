import { existsSync } from 'node:fs'
import { Option, type Command } from 'commander'
import { readTlsFiles } from '../config/tls-files.js'
import type { ServerLogin, ServerTrust } from '../tools/client/server-socket.js'
import { UsageError } from './failure.js'
import type { Terminal } from './terminal.js'

/** How a command comes into a server: flags of every command that speaks to one. */
export type ServerLoginFlags = Readonly<{ token?: string; ca?: string; cert?: string; key?: string }>

/** Flags that say which server, and how a command comes into it. */
export type ServerFlags = ServerLoginFlags & Readonly<{ url?: string }>

const loginFlags = ['--token', '--ca', '--cert', '--key'] as const

/** Attributes of flags that say nothing of what is done with a server. */
export const loginAttributes = loginFlags.map((flag) => flag.slice(2))

/** Adds `--url` with what it means for the command, and how to come in there. */
export function addServerOptions(command: Command, ofUrl: string, usualUrl?: string): Command {
  return addLoginOptions(command.addOption(new Option('-u, --url <url>', ofUrl).default(usualUrl)))
}

export function addLoginOptions(command: Command): Command {
  return command
    .addOption(new Option('--token <token>', 'token of the service').env('GANTRY_TOKEN'))
    .option('--ca <file>', 'PEM of certificates that vouch for the server, in place of those of Node')
    .option('--cert <file>', 'PEM of the certificate that is shown to a server with clientCa')
    .option('--key <file>', 'PEM of its key')
}

/** @throws UsageError for files that are of no use */
export function serverLogin(flags: ServerLoginFlags, env: Terminal['env'] = process.env): ServerLogin {
  const token = flags.token ?? env.GANTRY_TOKEN
  return { token: token === '' ? undefined : token, trust: trustOf(flags) }
}

function trustOf({ ca, cert, key }: ServerLoginFlags): ServerTrust {
  if ((cert === undefined) !== (key === undefined))
    throw new UsageError(
      '--cert and --key belong together',
      cert === undefined ? 'Add --cert FILE.' : 'Add --key FILE.',
    )
  const paths = { ca, cert, key }
  const { material, faults } = readTlsFiles(paths, { takesPassphrase: false })
  const [fault] = faults
  if (fault === undefined) return material
  const { setting, message, hint } = fault
  const path = setting === 'passphrase' ? undefined : paths[setting]
  const isThere = path === undefined || existsSync(path)
  throw new UsageError(`--${setting} ${message}`, isThere ? `${hint}.` : 'Name a PEM file.')
}
