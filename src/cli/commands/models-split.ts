import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { SplitReport } from '../../tools/split/split-model.js'
import type { CommandContext } from '../command-context.js'
import { UsageError } from '../failure.js'
import { homeOf } from '../model-source.js'
import { numberBetween, wholeNumber } from '../numbers.js'

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
  const [{ splitModel }, { modelOfFile, onnxModelNamed }] = await Promise.all([
    import('../../tools/split/split-model.js'),
    import('../../tools/model-file.js'),
  ])
  const isFile = existsSync(subject) && statSync(subject).isFile()
  if (isFile && options.out === undefined)
    throw new UsageError('a file needs a folder for its stages', 'Add --out FOLDER, a model repository.')
  const report = await splitModel(
    isFile ? modelOfFile(subject) : onnxModelNamed(repositories, subject, 'split'),
    {
      stages: wholeNumber(options.stages, '--stages', 2, 64),
      outDir: resolve(options.out ?? homeOf(repositories, subject)),
      gpus: (options.gpus ?? '')
        .split(',')
        .filter((gpu) => gpu !== '')
        .map((gpu) => wholeNumber(gpu, '--gpus', 0, 1023)),
      runs: wholeNumber(options.runs, '--runs', 1, 1_000),
      tolerance: numberBetween(options.tolerance, '--tolerance', 0, 1),
    },
  )
  terminal.out(options.json === true ? JSON.stringify(report, undefined, 2) : readable(report))
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
