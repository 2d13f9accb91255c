import { Option, type Command } from 'commander'
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { TransformReport, TransformRequest } from '../../tools/transform/transform-model.js'
import type { TransformTarget } from '../../tools/transform/write-model.js'
import type { CommandContext } from '../command-context.js'
import { exitCodes, UsageError } from '../failure.js'
import { pictureOrigins } from '../picture-origins.js'
import { homeOf } from '../model-source.js'
import { numberBetween, wholeNumber } from '../numbers.js'
import type { GlobalOptions } from '../options.js'

export type TransformCommandOptions = GlobalOptions &
  Readonly<{
    out?: string
    name?: string
    frames: readonly string[]
    pictures?: string
    proofPictures?: string
    calibration?: 'minmax' | 'percentile' | 'entropy'
    percentile?: string
    perTensor?: true
    weightBits?: '7' | '8'
    exclude: readonly string[]
    sensitivity?: string
    score?: string
    iou?: string
    maxDetections?: string
    maxBatch?: string
    tolerance?: string
    python?: string
    check?: true
  }>

const collect = (value: string, earlier: readonly string[]) => [...earlier, value]

const help = `
Steps, done in the order given:
  fold           bytes of a picture in (uint8 NHWC, RGB): factor, mean and order of colours go into the first convolution
  nms            decoding and NMS inside, [boxes, 6] out
  batch=free     a free batch dimension; batch=N a fixed one
  size=640x384   another size of picture; size=free leaves it open
  int8           static quantisation by onnxruntime.quantization, on the pictures of --frames
  float16        by ONNX Runtime's converter
  simplify       by onnxslim
int8, float16 and simplify bring Python packages into an environment of their own on first use.

Example:
  gantry models transform ppe_detect int8 --frames yard.mp4 --frames pictures/ --out models --name ppe_small`

/** Options and help of `gantry models transform`. */
export function transformOptions(command: Command): Command {
  return command
    .option(
      '-o, --out <place>',
      'repository that gets the result, or a file that ends in .onnx (default: the repository of the model)',
    )
    .option('--name <name>', 'name of the new entry (default: that of the model and the steps)')
    .addOption(
      new Option(
        '--frames <source>',
        'pictures for int8 and the proofs: a folder, a picture, a clip, the URL of a camera, or `cameras` of -c FILE; may be repeated',
      )
        .argParser(collect)
        .default([] as readonly string[], "the demo's clips, for proofs"),
    )
    .option('--pictures <n>', 'pictures that int8 calibrates on (default: 200)')
    .option('--proof-pictures <n>', 'pictures that each step is proved on (default: 16)')
    .addOption(
      new Option('--calibration <method>', 'how int8 finds ranges (default: minmax)').choices([
        'minmax',
        'percentile',
        'entropy',
      ]),
    )
    .option('--percentile <x>', 'of --calibration percentile: percent of the values inside (default: 99.99)')
    .option('--per-tensor', 'one scale for the weights of a layer, not one for each channel')
    .addOption(
      new Option('--weight-bits <n>', 'of int8 weights; 8 saturate on x64 without VNNI (default: 7)').choices(
        ['7', '8'],
      ),
    )
    .addOption(
      new Option('--exclude <layer>', 'layer that int8 leaves float; may be repeated')
        .argParser(collect)
        .default([] as readonly string[], 'none'),
    )
    .option(
      '--sensitivity <x>',
      'int8 leaves layers float that alone move the result by more than this part; 0: all are quantised (default: 0.1)',
    )
    .option('--score <x>', 'of nms: least score (default: 0.05)')
    .option('--iou <x>', 'of nms: most overlap (default: 0.5)')
    .option('--max-detections <n>', 'of nms: most boxes of a picture (default: 100)')
    .option('--max-batch <n>', 'of batch=free: max_batch_size of the result (default: 16)')
    .option('--tolerance <x>', 'how far each step may be off (default: of each step its own)')
    .option('--python <path>', 'a Python that has the packages of python/requirements.txt')
    .option('--check', 'bring Python for the ONNX checker also where no step needs it')
    .addHelpText('after', help)
}

/** `gantry models transform`: a model of the repositories, or a file, through steps into a new entry or file. */
export async function transformCommand(
  subject: string,
  words: readonly string[],
  repositories: readonly string[],
  options: TransformCommandOptions & Readonly<{ config?: string }>,
  { terminal, signals, exit }: CommandContext,
): Promise<void> {
  const [{ defaultTransform, transformModel }, { parseStep, stepText }, { modelOfFile, onnxModelNamed }] =
    await Promise.all([
      import('../../tools/transform/transform-model.js'),
      import('../../tools/transform/transform-step.js'),
      import('../../tools/model-file.js'),
    ])
  const steps = words.map(parseStep)
  const isFile = existsSync(subject) && statSync(subject).isFile()
  const model = isFile ? modelOfFile(subject) : onnxModelNamed(repositories, subject, 'transformed')
  const target = targetOf(
    options,
    `${model.name}_${steps.map(stepText).join('_').replaceAll('=', '')}`,
    () => (isFile ? undefined : homeOf(repositories, subject)),
  )
  const quiet = options.quiet === true || options.json === true
  const { quantise, nms } = defaultTransform
  const request: TransformRequest = {
    ...defaultTransform,
    steps,
    target,
    frames: await pictureOrigins(options, terminal.env),
    calibrationPictures:
      whole(options.pictures, '--pictures', 1, 10_000) ?? defaultTransform.calibrationPictures,
    proofPictures:
      whole(options.proofPictures, '--proof-pictures', 1, 10_000) ?? defaultTransform.proofPictures,
    quantise: {
      method: options.calibration ?? quantise.method,
      percentile: fraction(options.percentile, '--percentile', 100) ?? quantise.percentile,
      perChannel: options.perTensor !== true,
      weightBits: options.weightBits === '8' ? 8 : 7,
      exclude: options.exclude,
      sensitivity: fraction(options.sensitivity, '--sensitivity', 10) ?? quantise.sensitivity,
    },
    nms: {
      scoreThreshold: fraction(options.score, '--score') ?? nms.scoreThreshold,
      iouThreshold: fraction(options.iou, '--iou') ?? nms.iouThreshold,
      maxDetections: whole(options.maxDetections, '--max-detections', 1, 10_000) ?? nms.maxDetections,
    },
    maxBatchSize: whole(options.maxBatch, '--max-batch', 1, 1_024) ?? defaultTransform.maxBatchSize,
    tolerance: fraction(options.tolerance, '--tolerance', 100),
    python: options.python,
    check: options.check === true,
    env: terminal.env,
    quiet,
    say: (line) => void (quiet || terminal.err(`[transform] ${line}`)),
    signal: signals.asked,
  }
  try {
    const report = await transformModel(model, request)
    terminal.out(options.json === true ? JSON.stringify(report, undefined, 2) : readable(report))
  } catch (error) {
    // What fails because it is being ended is no failure of its own.
    if (!signals.asked.aborted) throw error
    exit(signals.first === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated)
  }
}

function targetOf(
  { out, name }: TransformCommandOptions,
  usual: string,
  home: () => string | undefined,
): TransformTarget {
  if (out?.endsWith('.onnx') === true) {
    if (name !== undefined)
      throw new UsageError('--name is of an entry, and --out is a file', 'Leave one of them out.')
    return { kind: 'file', path: resolve(out) }
  }
  const repository = out ?? home()
  if (repository === undefined)
    throw new UsageError(
      'a file needs a place for the result',
      'Add --out FOLDER, a model repository, or --out FILE.onnx.',
    )
  const entry = name ?? usual
  if (!/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/.test(entry))
    throw new UsageError(
      `"${entry}" cannot be the name of a model`,
      'Give one of letters, digits, "_", "-" and "." with --name.',
    )
  return { kind: 'entry', repository: resolve(repository), name: entry }
}

function whole(text: string | undefined, flag: string, min: number, max: number): number | undefined {
  return text === undefined ? undefined : wholeNumber(text, flag, min, max)
}

function fraction(text: string | undefined, flag: string, max = 1): number | undefined {
  return text === undefined ? undefined : numberBetween(text, flag, 0, max)
}

function readable({ path, steps, checker, fileBytes }: TransformReport): string {
  const lines = steps.flatMap(({ step, proof, fileBytes: bytes, quantised }) => {
    const { by, measured, tolerance, on, detections } = proof
    const said =
      detections === undefined
        ? ''
        : `; ${detections.same} of ${detections.original} detections are the same, it has ${detections.transformed}`
    return [
      `  ${step}: ${by} ${measured.toPrecision(2)}, at most ${tolerance}, on ${on}${said}; ${(bytes / 1e6).toFixed(1)} MB`,
      ...(quantised === undefined
        ? []
        : [
            `    ${quantised.layers - quantised.float32Layers.length} of ${quantised.layers} layers are int8, calibrated on ${quantised.pictures} pictures` +
              (quantised.excluded.length === 0 ? '' : `; left float: ${quantised.excluded.join(', ')}`),
          ]),
    ]
  })
  const checked =
    checker === undefined ? 'not checked by the ONNX checker (--check)' : `ONNX checker: ${checker}`
  return [`${path}: ${(fileBytes / 1e6).toFixed(1)} MB, ${checked}`, ...lines].join('\n')
}
