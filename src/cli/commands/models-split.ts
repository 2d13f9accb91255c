import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { SplitReport } from '../../tools/split/split-model.js'
import type { CommandContext } from '../command-context.js'
import { UsageError } from '../failure.js'

export type SplitCommandOptions = Readonly<{
  stages: string
  out?: string
  gpus?: string
  runs: string
  tolerance: string
  json?: boolean
}>

/** `gantry models split`: cuts a model of the repositories, or a file, into stages. */
export async function splitCommand(
  subject: string,
  repositories: readonly string[],
  options: SplitCommandOptions,
  { terminal }: CommandContext,
): Promise<void> {
  const [{ splitModel }, { repositoryWith }, { modelOfFile, onnxModelNamed }] = await Promise.all([
    import('../../tools/split/split-model.js'),
    import('../../repository/repository-files.js'),
    import('../../tools/model-file.js'),
  ])
  const isFile = existsSync(subject) && statSync(subject).isFile()
  if (isFile && options.out === undefined)
    throw new UsageError('a file needs a folder for its stages', 'Add --out FOLDER, a model repository.')
  const report = await splitModel(
    isFile ? modelOfFile(subject) : onnxModelNamed(repositories, subject, 'split'),
    {
      stages: number(options.stages, '--stages', 2, 64),
      outDir: resolve(options.out ?? repositoryWith(repositories, subject)),
      gpus: (options.gpus ?? '')
        .split(',')
        .filter((gpu) => gpu !== '')
        .map((gpu) => number(gpu, '--gpus', 0, 1023)),
      runs: number(options.runs, '--runs', 1, 1_000),
      tolerance: fraction(options.tolerance),
    },
  )
  terminal.out(options.json === true ? JSON.stringify(report, undefined, 2) : readable(report))
}

function number(text: string, flag: string, min: number, max: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new UsageError(`${flag} is "${text}"`, `Use a whole number from ${min} to ${max}.`)
}

function fraction(text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && value >= 0 && value <= 1) return value
  throw new UsageError(`--tolerance is "${text}"`, 'Use a number from 0 to 1.')
}

function readable({ ensemble, dir, stages, comparison }: SplitReport): string {
  const lines = stages.map(
    ({ name, nodes, share, fileBytes, crossingBytes, device }) =>
      `  ${name}: ${nodes} nodes, ${(share * 100).toFixed(0)} % of the work, ${(fileBytes / 1e6).toFixed(1)} MB, ${device}` +
      (crossingBytes > 0 ? `; ${(crossingBytes / 1e3).toFixed(0)} kB cross to later stages` : ''),
  )
  const { runs, largest, largestRelative } = comparison
  const equal =
    largest === 0
      ? `equal to the whole model on ${runs} random inputs`
      : `within ${largest.toPrecision(2)} of the whole model on ${runs} random inputs (${largestRelative.toPrecision(2)} of the largest value)`
  return [`${ensemble} in ${dir}: ${stages.length} stages, ${equal}`, ...lines].join('\n')
}
