import type { Command, Option } from 'commander'

/** Shells that completion can be written for. */
export const completionShells = ['bash', 'zsh', 'fish'] as const
export type CompletionShell = (typeof completionShells)[number]

type Choice = Readonly<{ word: string; about: string }>

/** What may stand behind a command: its own commands, its flags, and the values of those that take one of a list. */
type Place = Readonly<{
  /** Names from the program down, `models list`; empty for the program. */
  path: string
  commands: readonly Choice[]
  flags: readonly Choice[]
  /** Flags that take a value: a list, or any (a file, most often). */
  values: readonly Readonly<{ flags: readonly string[]; choices: readonly string[] }>[]
}>

/**
 * A script for a shell that completes commands, flags, their values and files. It holds all words, so that no process is started for a
 * completion; another version of the program needs it written anew.
 */
export function completionScript(program: Command, shell: CompletionShell): string {
  const places = placesOf(program, '', [])
  if (shell === 'bash') return bashScript(places)
  return shell === 'zsh' ? zshScript(places) : fishScript(places)
}

function placesOf(command: Command, path: string, inherited: readonly Option[]): Place[] {
  const own = command.createHelp().visibleOptions(command)
  const options = [...own, ...inherited]
  const commands = command.commands.filter((inner) => inner.name() !== 'help')
  const choice = (inner: Command): Choice => ({ word: inner.name(), about: inner.description() })
  const place = {
    path,
    commands: [...commands.map(choice), ...argumentChoices(command)],
    flags: options.flatMap((option) => flagsOf(option).map((word) => ({ word, about: option.description }))),
    values: options
      .filter((option) => option.required || option.optional)
      .map((option) => ({ flags: flagsOf(option), choices: option.argChoices ?? [] })),
  }
  // Those of the program hold everywhere.
  const passed =
    inherited.length > 0 ? inherited : own.filter(({ long }) => long !== '--help' && long !== '--version')
  return [place, ...commands.flatMap((inner) => placesOf(inner, `${path} ${inner.name()}`.trim(), passed))]
}

/** Where an argument is one of a list. */
function argumentChoices(command: Command): Choice[] {
  return command.registeredArguments.flatMap(({ argChoices = [] }) =>
    argChoices.map((word) => ({ word, about: '' })),
  )
}

function flagsOf({ short, long }: Option): string[] {
  return [short, long].filter((flag) => flag !== undefined)
}

/** Between single quotes of a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const words = (choices: readonly Choice[]): string => choices.map(({ word }) => word).join(' ')
const below = (places: readonly Place[]): readonly Place[] => places.filter(({ path }) => path !== '')
/** First sentence, on one line: lists of a shell are narrow. */
const brief = (text: string): string => (text.split('\n')[0] ?? '').slice(0, 80)

function bashScript(places: readonly Place[]): string {
  return `# gantry: completion for bash. In ~/.bashrc: source <(gantry completion bash)
_gantry() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at="" i commands="" flags=""
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at\${at:+ }\${COMP_WORDS[i]}" in
      ${below(places)
        .map(({ path }) => quoted(path))
        .join('|')}) at="$at\${at:+ }\${COMP_WORDS[i]}" ;;
    esac
  done
  COMPREPLY=()
  case "$at:$prev" in
${valueCases(places, (choices) =>
  choices.length === 0
    ? 'return ;;'
    : `COMPREPLY=($(compgen -W ${quoted(choices.join(' '))} -- "$cur")); return ;;`,
)}
  esac
  case "$at" in
${places
  .map(
    ({ path, commands, flags }) =>
      `    ${quoted(path)}) commands=${quoted(words(commands))} flags=${quoted(words(flags))} ;;`,
  )
  .join('\n')}
  esac
  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  elif [[ -n $commands ]]; then COMPREPLY=($(compgen -W "$commands" -- "$cur")); fi
}
# Where nothing of it fits, files do.
complete -o default -F _gantry gantry
`
}

function zshScript(places: readonly Place[]): string {
  const described = (choices: readonly Choice[]): string =>
    choices.map(({ word, about }) => quoted(`${word.replaceAll(':', '\\:')}:${brief(about)}`)).join(' ')
  return `#compdef gantry
# gantry: completion for zsh. In ~/.zshrc, behind compinit: source <(gantry completion zsh)
_gantry() {
  local at="" previous=\${words[CURRENT-1]} word
  local -a commands flags
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at\${at:+ }$word" in
      (${below(places)
        .map(({ path }) => quoted(path))
        .join('|')}) at="$at\${at:+ }$word" ;;
    esac
  done
  case "$at:$previous" in
${valueCases(places, (choices) => (choices.length === 0 ? '_files; return ;;' : `compadd -- ${choices.join(' ')}; return ;;`))}
  esac
  case "$at" in
${places
  .map(
    ({ path, commands, flags }) =>
      `    ${quoted(path)}) commands=(${described(commands)}); flags=(${described(flags)}) ;;`,
  )
  .join('\n')}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then _describe -o flag flags
  elif (( \${#commands} )); then _describe command commands
  else _files; fi
}
compdef _gantry gantry
`
}

/** Cases of "place:flag before" for flags that take a value. */
function valueCases(places: readonly Place[], done: (choices: readonly string[]) => string): string {
  return places
    .flatMap(({ path, values }) =>
      values.map(
        ({ flags, choices }) =>
          `    ${flags.map((flag) => quoted(`${path}:${flag}`)).join('|')}) ${done(choices)}`,
      ),
    )
    .join('\n')
}

function fishScript(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, commands, flags, values }) => {
    const here = `complete -c gantry -n ${quoted(`test (__gantry_at) = ${quoted(path)}`)}`
    const taken = (flag: string) => values.find((value) => value.flags.includes(flag))
    const option = (flag: string): string =>
      flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`
    return [
      ...commands.map(({ word, about }) => `${here} -f -a ${word} -d ${quoted(brief(about))}`),
      ...flags.map(({ word, about }) => {
        const value = taken(word)
        const how =
          value === undefined
            ? ''
            : value.choices.length === 0
              ? ' -r -F'
              : ` -x -a ${quoted(value.choices.join(' '))}`
        return `${here} ${option(word)}${how} -d ${quoted(brief(about))}`
      }),
    ]
  })
  return `# gantry: completion for fish. Once: gantry completion fish > ~/.config/fish/completions/gantry.fish
function __gantry_at
  set -l at ""
  for word in (commandline -opc)[2..]
    switch (string trim -- "$at $word")
      case ${below(places)
        .map(({ path }) => quoted(path))
        .join(' ')}
        set at (string trim -- "$at $word")
    end
  end
  echo $at
end
${lines.join('\n')}
`
}
