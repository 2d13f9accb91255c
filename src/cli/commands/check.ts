import { Command } from 'commander'
import { repositoriesOf, type LoadedPipeline } from '../../config/load.js'
import type { CameraShapes } from '../../detector/input-size.js'
import { repositoriesFrom } from '../../repository/repository-files.js'
import type { ProviderState } from '../../backends/onnxruntime/provider-look.js'
import { exitCodes } from '../failure.js'
import { allGood, printFindings, type Finding } from '../findings.js'
import { configOption, setOption, type GlobalOptions, type PipelineOptions } from '../options.js'
import type { CommandContext } from '../command-context.js'
import { loadNamed } from './serve.js'

type CheckOptions = PipelineOptions & GlobalOptions & Readonly<{ offline?: true; probe?: true }>

export function checkCommand(context: CommandContext): Command {
  return new Command('check')
    .description(
      'look at settings, cameras, model and brokers of a pipeline file; 2 when something would not work',
    )
    .addOption(configOption())
    .option('--offline', 'ask nothing over the network')
    .option('--probe', 'also open every camera that is enabled, until its first picture')
    .addOption(setOption())
    .action(async (_, self: Command) => {
      const options = self.optsWithGlobals<CheckOptions>()
      const say = options.quiet === true ? () => undefined : context.terminal.err
      const findings = await check(loadNamed(options, context), options, say, context)
      printFindings(findings, context.terminal, options)
      if (!allGood(findings)) context.exit(exitCodes.usage)
    })
}

async function check(
  { config, path, baseDir }: LoadedPipeline,
  options: CheckOptions,
  say: (line: string) => void,
  context: CommandContext,
): Promise<Finding[]> {
  const [
    { checkAddress },
    repository,
    { fetchRepositories },
    { checkInt8 },
    { checkCameras },
    { checkKafka },
    { checkRedis },
    { checkLimits },
    { lookAtProviders },
    { checkDecoding },
    { checkKeyFrames },
    { checkTls },
    { checkFolders },
    { checkTracing },
  ] = await Promise.all([
    import('../checks/address-check.js'),
    import('../checks/repository-check.js'),
    import('../checks/stored-repository-check.js'),
    import('../checks/int8-check.js'),
    import('../checks/camera-check.js'),
    import('../checks/kafka-check.js'),
    import('../checks/redis-check.js'),
    import('../checks/limits-check.js'),
    import('../checks/provider-check.js'),
    import('../checks/decoding-check.js'),
    import('../checks/key-frames-check.js'),
    import('../checks/tls-check.js'),
    import('../checks/folders-check.js'),
    import('../checks/tracing-check.js'),
  ])
  const { cameras, sinks } = config
  // Nodes of a cluster have theirs from its topic.
  const hasNone = cameras.length === 0 && config.engines > 0 && config.cluster === undefined
  const settings: Finding = {
    subject: 'settings',
    state: hasNone ? 'warning' : 'ok',
    detail: `${path ?? ''}: ${cameras.length} camera${cameras.length === 1 ? '' : 's'}`,
    ...(hasNone && { fix: 'list cameras, or add them by POST /api/v1/cameras while it runs' }),
  }
  const network = options.offline !== true
  const stored = await fetchRepositories({ config, path, baseDir }, context, network)
  const withFolders = stored.loaded?.config
  const providers = await lookAtProviders(config.inference)
  // First, since the shape of their pictures may decide the size of the model's input.
  const seen = await checkCameras(config, { probe: network && options.probe === true, say })
  const [models, detector, decoding, kafka, others, cluster, redis, tracing] = await Promise.all([
    withFolders ? repository.checkRepository(withFolders, providers, seen.shapes) : [],
    withFolders ? checkDetector(withFolders, providers, seen.shapes) : [],
    checkDecoding(config),
    sinks.kafka ? checkKafka(sinks.kafka, network) : [],
    checkOtherSinks(config, network),
    checkNode(config, network),
    checkRedis(config, network),
    checkTracing(config, network),
  ])
  return [
    settings,
    ...checkAddress(config),
    ...checkTls(config),
    ...checkLimits(config),
    ...(await checkFolders(config)),
    ...stored.findings,
    ...models,
    ...detector,
    ...(withFolders ? checkInt8(repositoriesOf(withFolders), providers) : []),
    ...seen.findings,
    ...decoding,
    ...checkKeyFrames(config),
    ...kafka,
    ...others,
    ...cluster,
    ...redis,
    ...tracing,
  ]
}

/** Loaded where there are some: their libraries are not small. */
async function checkOtherSinks(config: LoadedPipeline['config'], network: boolean): Promise<Finding[]> {
  const { kafka, webhook, mqtt } = config.sinks
  if (webhook === undefined && mqtt === undefined && (kafka?.filter.cameras.length ?? 0) === 0) return []
  const { checkSinks } = await import('../checks/sinks-check.js')
  return checkSinks(config, network)
}

/** Of a node of a cluster. */
async function checkNode(config: LoadedPipeline['config'], network: boolean): Promise<Finding[]> {
  if (config.cluster === undefined) return []
  const { checkCluster } = await import('../checks/cluster-check.js')
  return checkCluster(config, config.cluster, network)
}

/** The model of the cameras, and where it would run. */
async function checkDetector(
  config: LoadedPipeline['config'],
  states: readonly ProviderState[],
  shapes: CameraShapes,
): Promise<Finding[]> {
  const [
    { canLookForModel },
    { checkModel },
    { deviceFindings, providerFinding },
    { checkProviderOptions },
    { checkMemoryLimits },
    { checkFloat16 },
  ] = await Promise.all([
    import('../checks/repository-check.js'),
    import('../checks/model-check.js'),
    import('../checks/provider-check.js'),
    import('../checks/provider-options-check.js'),
    import('../checks/memory-limit-check.js'),
    import('../checks/float16-check.js'),
  ])
  if (config.engines === 0 || !(await canLookForModel(config))) return []
  const repositories = repositoriesFrom(repositoriesOf(config), config.ensemble)
  const { allowJsBackends } = config.models
  const model = checkModel(repositories, config.ensemble, states, allowJsBackends, shapes)
  const { inference } = config
  const options = [
    ...checkProviderOptions(inference, states),
    ...(await checkMemoryLimits(repositories, config.ensemble, inference, states)),
  ]
  const float16 = await checkFloat16(repositories, config.ensemble, inference, states)
  return [...model, ...float16, providerFinding(states), ...options, ...(await deviceFindings(inference))]
}
