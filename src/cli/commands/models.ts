import { Command } from 'commander'
import { loadPipeline } from '../../config/load.js'
import type { DetectorReport, ModelReport } from '../../tools/model-catalog.js'
import { type ErrorRecord, RemoteError } from '../../errors.js'
import { repositoriesFor } from '../model-source.js'
import { configOption, type GlobalOptions } from '../options.js'
import type { CommandContext } from '../command-context.js'
import { splitCommand, type SplitCommandOptions } from './models-split.js'
import { transformCommand, type TransformCommandOptions, transformOptions } from './models-transform.js'
import { addServerOptions, type ServerFlags } from '../server-options.js'
import { addLiveCommands, listLive } from './live-models.js'

type ModelsOptions = GlobalOptions & ServerFlags & Readonly<{ config?: string; repository?: string }>

export function modelsCommand(context: CommandContext): Command {
  const models = new Command('models').description(
    'look into the model repository, and change what a running service serves',
  )
  const withRepository = (command: Command) =>
    command
      .addOption(configOption('pipeline file that names the repositories'))
      .option('-r, --repository <folder>', 'the repository itself (default: the models of this installation)')

  addServerOptions(
    withRepository(models.command('list').description('models, their versions and what each is')),
    'what a running service has, and the state of each, instead of a folder',
  ).action(async (_, self: Command) => {
    const options = self.optsWithGlobals<ModelsOptions>()
    await (options.url === undefined ? list(options, context) : listLive(options, context))
  })
  withRepository(
    models
      .command('inspect <model>')
      .description('tensors, head, labels and settings of one model; 2 when cameras could not run it'),
  ).action(async (name: string, _, self: Command) =>
    inspect(name, self.optsWithGlobals<ModelsOptions>(), context),
  )
  addLiveCommands(models, context)
  withRepository(
    models
      .command('split <model>')
      .description(
        'cut an ONNX model (of the repository, or a file) into stages, each for a device of its own',
      )
      .requiredOption('-n, --stages <n>', 'number of stages')
      .option('-o, --out <folder>', 'repository that gets the stages (default: the one the model is in)')
      .option('--gpus <list>', 'GPU of each stage, like 0,1 (default: CPU)')
      .option('--runs <n>', 'random inputs on which stages and whole model are compared', '3')
      .option('--tolerance <x>', 'largest difference allowed, relative to the largest value', '0.001'),
  ).action(async (subject: string, _, self: Command) => {
    const options = self.optsWithGlobals<ModelsOptions & SplitCommandOptions>()
    await splitCommand(subject, await repositoriesFor(options, context), options, context)
  })
  transformOptions(
    withRepository(
      models
        .command('transform <model> <steps...>')
        .description(
          'change an ONNX model (of the repository, or a file) step by step into a new entry or file',
        ),
    ),
  ).action(async (subject: string, steps: readonly string[], _, self: Command) => {
    const options = self.optsWithGlobals<ModelsOptions & TransformCommandOptions>()
    await transformCommand(subject, steps, await repositoriesFor(options, context), options, context)
  })
  return models
}

async function list(options: ModelsOptions, context: CommandContext): Promise<void> {
  const [{ listModels }, { modelTable }] = await Promise.all([
    import('../../tools/model-catalog.js'),
    import('../model-report.js'),
  ])
  const { terminal } = context
  const repositories = await repositoriesFor(options, context)
  const models = listModels(repositories)
  terminal.out(
    options.json
      ? JSON.stringify({ repository: repositories[0], repositories, models }, undefined, 2)
      : modelTable(models, terminal.color.out),
  )
}

async function inspect(name: string, options: ModelsOptions, context: CommandContext): Promise<void> {
  const [{ inspectModel }, { readableReport }, { stringify }] = await Promise.all([
    import('../../tools/model-catalog.js'),
    import('../model-report.js'),
    import('yaml'),
  ])
  const report = inspectModel(await repositoriesFor(options, context), name)
  const taken = await takenHere(report, options, context)
  context.terminal.out(
    options.json
      ? JSON.stringify({ ...report, ...(taken === undefined ? {} : { runsHere: taken }) }, undefined, 2)
      : stringify(readableReport(report, taken), { lineWidth: 0 }).trimEnd(),
  )
  // What is shown is no less right, but whoever relies on the exit code would find it out from `serve`.
  const fault = await faultForCameras(report, options, context)
  if (fault !== undefined) throw new RemoteError(fault)
}

/** Why `serve` would refuse it for cameras. What was never made for them is no fault, unless the pipeline file that is named says so. */
async function faultForCameras(
  { name, detectorError, forClientsAlone }: ModelReport,
  options: ModelsOptions,
  context: CommandContext,
): Promise<ErrorRecord | undefined> {
  if (detectorError !== undefined && forClientsAlone !== true) return detectorError
  if (options.config === undefined) return undefined
  const { config } = loadPipeline(options.config, { env: context.terminal.env })
  if (config.engines === 0 || config.ensemble !== name) return undefined
  const { checkModel } = await import('../checks/model-check.js')
  const findings = checkModel(
    await repositoriesFor(options, context),
    name,
    [],
    config.models.allowJsBackends,
  )
  const failed = findings.find(({ state }) => state === 'failed')
  return failed && { code: 'GANTRY_MODEL_CONFIG', message: failed.detail, hint: failed.fix ?? '' }
}

/** Which detector runs on this machine, of an ensemble that has one for GPUs. */
async function takenHere(
  { detector, gpuDetector }: ModelReport,
  { config }: ModelsOptions,
  { terminal }: CommandContext,
): Promise<string | undefined> {
  if (detector === undefined || gpuDetector === undefined) return undefined
  const [{ choiceText }, { lookAtProviders }] = await Promise.all([
    import('../checks/model-check.js'),
    import('../checks/provider-check.js'),
  ])
  const { inference } = loadPipeline(config, { env: terminal.env }).config
  const named = ({ detector: text }: DetectorReport) => ({ name: text })
  return choiceText(named(detector), named(gpuDetector), await lookAtProviders(inference))
}
