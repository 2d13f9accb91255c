import { Command, InvalidArgumentError } from 'commander'
import type { CommandContext } from '../command-context.js'
import type { GlobalOptions } from '../options.js'

type TokenOptions = GlobalOptions & Readonly<{ mode: number; readBy?: string }>

export function tokenCommand(context: CommandContext): Command {
  return new Command('token')
    .description('make a token for server.token in a file, unless it has one')
    .argument('<file>', 'named by GANTRY__SERVER__TOKEN_FILE or ${file:...}')
    .option('--mode <octal>', 'rights of a file that is made', octalMode, 0o600)
    .option('--read-by <command>', 'command to name to people who look for the token (default: cat FILE)')
    .action(async (file: string, _, self: Command) => {
      const { mode, readBy, json, quiet } = self.optsWithGlobals<TokenOptions>()
      const { keptToken } = await import('../token-file.js')
      const made = keptToken(file, mode)
      const { terminal } = context
      if (json === true) terminal.out(JSON.stringify({ file, made }))
      else if (quiet !== true)
        terminal.out(`${file}: ${made ? 'made' : 'kept as it was'}; read it: ${readBy ?? `cat ${file}`}`)
    })
}

function octalMode(text: string): number {
  if (!/^0?[0-7]{3}$/.test(text)) throw new InvalidArgumentError('It is three octal digits: 600, 640, 644.')
  const mode = Number.parseInt(text, 8)
  if ((mode & 0o400) === 0) throw new InvalidArgumentError('Its owner has to be able to read it: 4 and more.')
  if ((mode & 0o022) !== 0)
    throw new InvalidArgumentError('Others than its owner must not write it: 600, 640, 644.')
  return mode
}
