import { Command, Option } from 'commander'
import { nodeWarnings } from '../../lifecycle/node-warnings.js'
import type { CommandContext } from '../command-context.js'
import { exitCodes, warningsOn } from '../failure.js'
import type { OptimizeOptions } from '../optimization.js'
import { configOption } from '../options.js'
import { Progress } from '../progress.js'
import { addLoginOptions, loginAttributes } from '../server-options.js'

const examples = `
Examples:
  gantry optimize ppe_detect --data datasets/hardhat-workers --classes helmet,head --frames yard.mp4 --max-p99 100
  gantry optimize yolox.onnx --out models --frames pictures/ --objective latency
  gantry optimize ppe --trace http://127.0.0.1:8000 --frames pictures/ --apply http://127.0.0.1:8000

What is measured is kept in the folder of --work: the same command goes on where it was cut. results.csv, report.html and report.json are
written there.`

export function optimizeCommand(context: CommandContext): Command {
  const collect = (value: string, earlier: readonly string[] = []) => [...earlier, value]
  const command = new Command('optimize')
    .description(
      'find the fastest way to run a model on this machine within limits, and write it as a model of its own',
    )
    .argument(
      '<model>',
      'ONNX model of a repository, an .onnx file, or an ensemble for cameras, whose detector it then is',
    )
    .addOption(configOption('pipeline file that names the repositories'))
    .option('-r, --repository <folder>', 'the repository itself (default: the models of this installation)')
    .option('-o, --out <folder>', 'repository that gets the result (default: that of the model)')
    .option('--name <name>', 'of the result (default: that of the model and _optimized)')
    .option('--work <folder>', 'what is kept between two parts of a search (default: gantry-optimize/MODEL)')
    .option('--restart', 'forget what the folder of --work knows')
    .addOption(
      new Option('--objective <what>', 'what is made as good as it can be')
        .choices(['throughput', 'latency', 'weighted'])
        .default('throughput'),
    )
    .option('--weight <x>', 'of throughput in --objective weighted, from 0 to 1', '0.5')
    .option('--max-p99 <ms>', 'limit: p99 of a request')
    .option('--min-throughput <n>', 'limit: inferences per second')
    .option('--max-memory <MiB>', 'limit: memory of a process with the model')
    .option('-d, --data <path>', 'labelled set, as for gantry eval: forms of the model are judged by mAP')
    .addOption(new Option('--split <name>', 'of a YOLO set').choices(['train', 'val', 'test']).default('val'))
    .option('--images <folder>', 'pictures of a COCO set (default: looked for around the file)')
    .option('--limit <n>', 'only the first pictures of the set')
    .option('--classes <list>', 'score these alone: those that the set labels completely')
    .option('--map <class=label>', 'label of the model for a class of the set; may be repeated', collect)
    .option('--min-map <x>', 'limit: mAP')
    .option('--max-drop <x>', 'limit: mAP lost against the model as it is', '0.01')
    .addOption(
      new Option(
        '--frames <source>',
        'pictures that int8 calibrates on, and without --data forms are compared on: a folder, a picture, a clip, the URL of a camera, or `cameras` of -c FILE; may be repeated',
      )
        .argParser(collect)
        .default([] as readonly string[], "the demo's clips, for comparisons"),
    )
    .option('--pictures <n>', 'pictures of --frames that forms are compared on', '64')
    .option(
      '--min-agreement <x>',
      'limit without --data: agreement with what the model as it is finds',
      '0.9',
    )
    .option('--forms <list>', 'float32, int8, float16 (default: float32,int8; on a GPU float32,float16)')
    .option('--sizes <list>', 'other sizes of the picture, such as 640x384,512x288')
    .option(
      '--providers <list>',
      'cpu, cuda, tensorrt (default: those of the settings that this machine has)',
    )
    .option('--threads <list>', 'in a session, on the CPU (default: 1 and its doubles up to the cores)')
    .option('--spinning <list>', 'threads wait busily: on, off', 'off,on')
    .option('--graph <list>', 'optimisation: disabled, basic, extended, all', 'all,basic')
    .option('--arena <list>', 'memory of the CPU is kept between runs: on, off', 'on,off')
    .option('--execution <list>', 'of the graph: sequential, parallel', 'sequential,parallel')
    .option('--instances <list>', '(default: 1 and its doubles up to twice the cores)')
    .option('--batches <list>', 'most requests in a run', '1,2,4,8')
    .option('--delays <list>', 'milliseconds that a batch waits to be filled', '0,2')
    .option(
      '--concurrency <list>',
      'requests under way (default: as many as keep the instances busy, and twice as many)',
    )
    .option('--trace <file|url>', 'load: arrivals of cameras, recorded from a running service now, or before')
    .option('--trace-seconds <n>', 'how long they are recorded', '30')
    .option('--input-data <what>', 'of requests, as for gantry perf', 'random')
    .option(
      '--shape <name:d1,d2>',
      'sizes of an input that are free, without the batch; may be repeated',
      collect,
    )
    .option('--trials <n>', 'most configurations that are tried (default: a tenth of all, 30 at least)')
    .option('--rounds <n>', 'turns in which the best are measured again', '3')
    .option(
      '--brief',
      'leave out of the report what each step gains, the curves, and what the processor can do',
    )
    .option('--window-ms <n>', 'shortest measurement window; slow models get longer ones', '300')
    .option('--seed <n>', 'of the search', '1')
    .option('--python <path>', 'a Python that has the packages of python/requirements.txt')
    .option('--apply <url>', 'let the cameras of this running service take the result, on trial')
    .option('--apply-seconds <n>', 'how long the trial is', '60')
    .option('--apply-ratio <x>', 'how many times the p99 of before the cameras may take then', '1.25')

  return addLoginOptions(command)
    .addHelpText('after', examples)
    .action(async (subject: string, _: unknown, self: Command) => {
      const options = self.optsWithGlobals<OptimizeOptions>()
      nodeWarnings.tell(warningsOn(context.terminal, options.json === true))
      await optimize(subject, options, commandText(subject, self), context)
    })
}

/** The command line that makes the same search, without what is secret or of this time alone. */
function commandText(subject: string, command: Command): string {
  const once = new Set([...loginAttributes, 'apply', 'applySeconds', 'applyRatio', 'restart'])
  const flags = command.options
    .filter((option) => command.getOptionValueSource(option.attributeName()) === 'cli')
    .filter((option) => !once.has(option.attributeName()))
    .flatMap((option) => {
      const value: unknown = command.getOptionValue(option.attributeName())
      const values = Array.isArray(value) ? value : [value]
      return values.map((one) => (one === true ? `${option.long}` : `${option.long} ${quoted(String(one))}`))
    })
  return ['gantry optimize', quoted(subject), ...flags].join(' ')
}

function quoted(text: string): string {
  return /^[\w./:,=@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

async function optimize(
  subject: string,
  options: OptimizeOptions,
  command: string,
  context: CommandContext,
): Promise<void> {
  const { terminal, signals } = context
  const { runOptimization } = await import('../optimization.js')
  const progress = new Progress(terminal, options.quiet === true || options.json === true)
  try {
    await runOptimization(subject, options, command, progress, context)
  } catch (error) {
    // What fails because it is being ended is no failure.
    if (!signals.asked.aborted) throw error
  } finally {
    progress.end()
  }
  if (signals.first !== undefined)
    context.exit(signals.first === 'SIGTERM' ? exitCodes.terminated : exitCodes.interrupted)
}
