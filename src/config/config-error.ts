import { GantryError } from '../errors.js'

/** One thing that is wrong with the settings, and where. */
export type ConfigProblem = Readonly<{
  /** The pipeline file, or `environment` or `command line` for a setting that came from there. */
  file: string
  /** 1-based; absent for what has no place in a file. */
  line?: number
  column?: number
  /** `cameras[0].sampleFps`; the name of the variable or flag for a setting that did not come from the file. */
  path: string
  message: string
  /** What to do, where it can be told. */
  hint?: string
}>

/** `file:line:col: path: message; hint`, as editors and terminals link it. */
function problemLine({ file, line, column, path, message, hint }: ConfigProblem): string {
  const place = line === undefined ? file : `${file}:${line}:${column ?? 1}`
  return [place, ...(path === '' ? [] : [path]), hint ? `${message}; ${hint}` : message].join(': ')
}

/** The settings cannot be used. Holds every problem found, not the first one. */
export class ConfigError extends GantryError {
  readonly code = 'GANTRY_CONFIG'
  readonly hint = 'Every setting is described in docs/configuration.md; `gantry check -c FILE` looks again.'
  constructor(readonly problems: readonly ConfigProblem[]) {
    super(problems.map(problemLine).join('\n'))
    this.name = 'ConfigError'
  }
}
