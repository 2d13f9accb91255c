import { Command } from 'commander'
import { join } from 'node:path'
import { loadPipeline, repositoriesOf } from '../../config/load.js'
import { repositoriesFrom } from '../../repository/repository-files.js'
import { exitCodes } from '../failure.js'
import { allGood, printFindings, type Finding } from '../findings.js'
import { configOption, type GlobalOptions } from '../options.js'
import type { CommandContext } from '../command-context.js'
import { installation } from '../../lifecycle/installation.js'

type DoctorOptions = GlobalOptions & Readonly<{ config?: string }>

export function doctorCommand(context: CommandContext): Command {
  return new Command('doctor')
    .description('what this machine has and what it lacks, with the fix for each')
    .addOption(
      configOption('pipeline file whose model, ports and brokers are looked at (default: the usual ones)'),
    )
    .action(async (_, self: Command) => {
      const options = self.optsWithGlobals<DoctorOptions>()
      const findings = (
        await Promise.all([
          examineHost(options, context),
          examineService(options, context),
          examineBrokers(options, context),
        ])
      ).flat()
      printFindings(findings, context.terminal, options)
      if (!allGood(findings)) context.exit(exitCodes.runtime)
    })
}

async function examineHost({ config }: DoctorOptions, { terminal }: CommandContext): Promise<Finding[]> {
  const { inference } = loadPipeline(config, { env: terminal.env }).config
  const [
    { examineFfmpeg },
    machine,
    { examineOnnxRuntime },
    { deviceFindings, devicesToTry },
    { checkTemporaryFolder },
  ] = await Promise.all([
    import('../doctor/ffmpeg.js'),
    import('../doctor/machine.js'),
    import('../doctor/onnx-runtime.js'),
    import('../checks/provider-check.js'),
    import('../checks/folders-check.js'),
  ])
  const [firstDevice = 0] = await devicesToTry(inference)
  const [ffmpeg, setpriv, runtime, devices, gpus, java, temporary] = await Promise.all([
    examineFfmpeg(),
    machine.examineSetpriv(),
    examineOnnxRuntime(firstDevice),
    deviceFindings(inference),
    machine.examineGpus(),
    machine.examineJava(),
    checkTemporaryFolder(),
  ])
  return [
    machine.examineNode(),
    ...machine.examineMachine(),
    temporary,
    ...ffmpeg,
    setpriv,
    ...runtime,
    ...devices,
    gpus,
    java,
  ]
}

/** Model and ports of the pipeline file, or those a service has that nothing else was said to. */
async function examineService({ config }: DoctorOptions, context: CommandContext): Promise<Finding[]> {
  const repository = { flag: 'doctor', path: 'models.repository', text: join(installation, 'models') }
  const flags = config === undefined ? [repository] : []
  const asked = loadPipeline(config, { env: context.terminal.env, flags })
  const { fetchRepositories } = await import('../checks/stored-repository-check.js')
  const { loaded, findings } = await fetchRepositories(asked, context, true)
  const settings = asked.config
  const [
    { examinePorts },
    { checkModel },
    { checkFloat16 },
    { checkInt8 },
    { checkLimits },
    { lookAtProviders },
  ] = await Promise.all([
    import('../doctor/ports.js'),
    import('../checks/model-check.js'),
    import('../checks/float16-check.js'),
    import('../checks/int8-check.js'),
    import('../checks/limits-check.js'),
    import('../checks/provider-check.js'),
  ])
  const { ensemble, engines, inference, server, modelServer } = settings
  const providers = await lookAtProviders(inference)
  const folders = loaded ? repositoriesOf(loaded.config) : []
  const repositories = repositoriesFrom(folders, ensemble)
  const models =
    engines === 0 || loaded === undefined
      ? []
      : [
          ...checkModel(repositories, ensemble, providers, settings.models.allowJsBackends),
          ...(await checkFloat16(repositories, ensemble, inference, providers)),
        ]
  return [
    ...checkLimits(settings),
    ...findings,
    ...models,
    ...checkInt8(folders, providers),
    ...(await examinePorts(server, modelServer.enabled)),
  ]
}

async function examineBrokers({ config }: DoctorOptions, { terminal }: CommandContext): Promise<Finding[]> {
  if (config === undefined) {
    const { examinePort } = await import('../doctor/brokers.js')
    return Promise.all([
      examinePort('kafka', '127.0.0.1', 9092, 'results go to WebSocket clients and the page only'),
      examinePort('redis', '127.0.0.1', 6379, 'recent results are kept in memory'),
    ])
  }
  const settings = loadPipeline(config, { env: terminal.env }).config
  const { sinks, cache } = settings
  const [{ checkKafka }, { checkRedis }] = await Promise.all([
    import('../checks/kafka-check.js'),
    import('../checks/redis-check.js'),
  ])
  const none = (subject: string): Finding[] => [{ subject, state: 'skipped', detail: 'not configured' }]
  const findings = await Promise.all([
    sinks.kafka ? checkKafka(sinks.kafka, true) : none('kafka'),
    sinks.webhook === undefined && sinks.mqtt === undefined
      ? []
      : import('../checks/sinks-check.js').then(({ checkSinks }) => checkSinks(settings, true)),
    cache.redis === undefined && settings.models.cache.redis === undefined
      ? none('redis')
      : checkRedis(settings, true),
  ])
  return findings.flat()
}
