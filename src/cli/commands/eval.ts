import { Command, Option } from 'commander'
import { GantryError } from '../../errors.js'
import { nodeWarnings } from '../../lifecycle/node-warnings.js'
import type { Evaluation, ScoredRun } from '../../tools/eval/evaluation.js'
import type { CommandContext } from '../command-context.js'
import { type EvalFlags, evalRequest } from '../eval-options.js'
import { evaluationTables } from '../eval-tables.js'
import { exitCodes, warningsOn } from '../failure.js'
import { configOption, type GlobalOptions } from '../options.js'
import { Progress } from '../progress.js'
import { labelsOption } from '../scorer-flags.js'
import { addServerOptions } from '../server-options.js'

type EvalOptions = GlobalOptions & EvalFlags

const examples = `
Examples:
  gantry eval ppe_detect --data datasets/hardhat-workers --classes helmet,head
  gantry eval ppe_detect ppe_detect_int8 --data datasets/construction-safety --map no-helmet=head --report eval.html
  gantry eval yolox --data annotations/instances_val2017.json --images val2017 --csv eval.csv
  gantry eval ppe --url http://127.0.0.1:8000 --data datasets/hardhat-workers --classes helmet,head --precision 0.95`

export function evalCommand(context: CommandContext): Command {
  const collect = (value: string, earlier: readonly string[] = []) => [...earlier, value]
  const command = new Command('eval')
    .description('accuracy (COCO mAP, by class) and speed of models on pictures with labels')
    .argument('<models...>', 'ensembles for cameras or detectors; the others are compared with the first')
    .requiredOption('-d, --data <path>', 'data.yaml of a YOLO set or its folder, or COCO instances (.json)')
    .addOption(new Option('--split <name>', 'of a YOLO set').choices(['train', 'val', 'test']).default('val'))
    .option('--images <folder>', 'pictures of a COCO set (default: looked for around the file)')
    .option('--limit <n>', 'only the first pictures')
    .option('--classes <list>', 'score these alone: those that the set labels completely')
    .option('--map <class=label>', 'label of the model for a class of the set; may be repeated', collect)
    .option('--score <x>', 'lowest score that counts for mAP', '0.001')
    .option('--iou <x>', 'overlap of NMS (default: as the model is served)')
    .option('--max-detections <n>', 'most detections of a picture (default: as the model is served)')
    .option('--at <x>', 'score at which precision, recall and confusion are told', '0.3')
    .option('--precision <x>', 'also tell the score from which on a class is right so often, such as 0.95')
    .option('--bootstrap <n>', 'draws for the intervals; 0: none', '1000')
    .option('--seed <n>', 'of the draws', '1')
    .option('--parallel <n>', 'pictures at once (default: as many as keep the model busy)')
    .addOption(configOption('pipeline file that names the repositories, and how models run'))
    .option('-r, --repository <folder>', 'the repository itself (default: the models of this installation)')

  return addServerOptions(command, 'score what this running server answers: http://, https://, grpc://')
    .addOption(labelsOption())
    .option('--head <kind>', 'with --url: head of a plain detector, where its outputs do not tell')
    .option('--report <file>', 'write a page with curves and the worst pictures')
    .option('--csv <file>', 'write a row for each model and class')
    .option('--save <file>', 'write everything as JSON')
    .addHelpText('after', examples)
    .action(async (models: readonly string[], _: unknown, self: Command) => {
      const options = self.optsWithGlobals<EvalOptions>()
      nodeWarnings.tell(warningsOn(context.terminal, options.json === true))
      await evaluate(models, options, context)
    })
}

async function evaluate(
  models: readonly string[],
  options: EvalOptions,
  context: CommandContext,
): Promise<void> {
  const { signals } = context
  const progress = new Progress(context.terminal, options.quiet === true || options.json === true)
  try {
    await evaluated(models, options, progress, context)
  } catch (error) {
    // What fails because it is being ended is no failure.
    if (!signals.asked.aborted || error instanceof GantryError) throw error
  } finally {
    progress.end()
  }
  if (signals.first !== undefined)
    context.exit(signals.first === 'SIGTERM' ? exitCodes.terminated : exitCodes.interrupted)
}

/** What was scored is told, whatever ended it. */
async function evaluated(
  models: readonly string[],
  options: EvalOptions,
  progress: Progress,
  context: CommandContext,
): Promise<void> {
  const { signals } = context
  const request = evalRequest(options)
  const [{ readLabelledSet }, { checkReportFile }, { openScorers }, { evaluateModels }] = await Promise.all([
    import('../../tools/eval/read-set.js'),
    import('../../tools/report/report-file.js'),
    import('../open-scorers.js'),
    import('../../tools/eval/evaluate-models.js'),
  ])
  for (const file of [options.report, options.csv, options.save])
    if (file !== undefined) checkReportFile(file)
  const set = readLabelledSet(request.set)
  const all = set.pictures.length
  progress.show(`${all} pictures; opening ${models.join(', ')}`)
  const { scorers, notes, stop } = await openScorers(models, options, request.settings, context)
  try {
    const began = new Map<unknown, number>()
    const { evaluation, runs, failure } = await evaluateModels(scorers, {
      ...request,
      set: { ...set, notes: [...set.notes, ...notes] },
      signal: signals.asked,
      onPicture: (scorer, done) => {
        const beganMs = began.get(scorer) ?? performance.now()
        began.set(scorer, beganMs)
        progress.show(`${scorer.info.name}: ${progressText(done, all, performance.now() - beganMs)}`)
      },
    })
    progress.end()
    if (evaluation !== undefined) await tell(evaluation, runs, options, context)
    if (failure !== undefined) throw failure
  } finally {
    await stop()
  }
}

/** `120 of 395 pictures, 41.2/s, 7 s left`. */
function progressText(done: number, all: number, forMs: number): string {
  if (done < 2 || forMs <= 0) return `${done} of ${all} pictures`
  // The first one began the clock.
  const perSecond = ((done - 1) / forMs) * 1_000
  const left = Math.ceil((all - done) / perSecond)
  return `${done} of ${all} pictures, ${perSecond.toFixed(1)}/s, ${left} s left`
}

/** The answer first: a file that cannot be written must not take it along. */
async function tell(
  evaluation: Evaluation,
  runs: readonly ScoredRun[],
  options: EvalOptions,
  { terminal }: CommandContext,
): Promise<void> {
  const json = JSON.stringify(evaluation, undefined, 2)
  if (options.json === true) terminal.out(json)
  else {
    terminal.out(evaluationTables(evaluation, terminal.color.out))
    if (options.quiet !== true) for (const note of evaluation.notes) terminal.err(`note: ${note}`)
  }
  const { report, csv, save } = options
  if (report === undefined && csv === undefined && save === undefined) return
  const [{ writeReportFile }, { evaluationCsv }, { evaluationPage }] = await Promise.all([
    import('../../tools/report/report-file.js'),
    import('../../tools/eval/evaluation-csv.js'),
    import('../../tools/eval/evaluation-page.js'),
  ])
  if (save !== undefined) writeReportFile(save, `${json}\n`)
  if (csv !== undefined) writeReportFile(csv, evaluationCsv(evaluation))
  if (report !== undefined) writeReportFile(report, await evaluationPage(evaluation, runs))
}
