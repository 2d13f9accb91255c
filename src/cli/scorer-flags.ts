import { Option } from 'commander'
import { UsageError } from './failure.js'

/** Flags of a running server that scores pictures in place of a model here, and of what it does not tell. */
export type ScorerFlags = Readonly<{ url?: string; token?: string; labels?: string; head?: string }>

export function labelsOption(): Option {
  return new Option(
    '--labels <file>',
    'with --url: names of the classes, one on each line (default: those of the same model here)',
  )
}

/** @throws UsageError for what is of a server, without one */
export function checkScorerFlags(flags: ScorerFlags): void {
  for (const name of ['labels', 'head'] as const)
    if (flags[name] !== undefined && flags.url === undefined)
      throw new UsageError(
        `--${name} is of a server`,
        'Add --url; a repository says it in the folder of the model.',
      )
}
