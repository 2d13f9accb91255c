import { Argument, Command } from 'commander'
import type { CommandContext } from '../command-context.js'
import { completionScript, completionShells, type CompletionShell } from '../completion.js'

const help = `
bash: add to ~/.bashrc: source <(gantry completion bash)
zsh:  add to ~/.zshrc, behind compinit: source <(gantry completion zsh)
fish: once: gantry completion fish > ~/.config/fish/completions/gantry.fish`

/** `gantry completion SHELL`: the script that has a shell complete commands, flags, values and files. */
export function completionCommand(context: CommandContext): Command {
  return new Command('completion')
    .description('print a script with which a shell completes `gantry`')
    .addArgument(new Argument('<shell>').choices(completionShells))
    .addHelpText('after', help)
    .action((shell: CompletionShell, _, self: Command) => {
      if (self.parent !== null) context.terminal.out(completionScript(self.parent, shell).trimEnd())
    })
}
