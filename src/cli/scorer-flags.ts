import { Option } from 'commander'
import { UsageError } from './failure.js'
import type { ServerFlags } from './server-options.js'

/** Flags of a running server that scores pictures in place of a model here, and of what it does not tell. */
export type ScorerFlags = ServerFlags & Readonly<{ labels?: string; head?: string }>

export function labelsOption(): Option {
  return new Option(
    '--labels <file>',
    'with --url: names of the classes, one on each line (default: those of the same model here)',
  )
}

/** @throws UsageError for what is of a server, without one */
export function checkScorerFlags(flags: ScorerFlags): void {
  for (const name of ['labels', 'head', 'ca', 'cert', 'key'] as const)
    if (flags[name] !== undefined && flags.url === undefined)
      throw new UsageError(
        `--${name} is of a server`,
        name === 'labels' || name === 'head'
          ? 'Add --url; a repository says it in the folder of the model.'
          : 'Add --url.',
      )
}
