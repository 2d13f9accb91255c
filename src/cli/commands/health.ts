import { resolve } from 'node:path'
import { Command } from 'commander'
import { GantryError } from '../../errors.js'
import { standardInput, standardInputName } from '../../config/standard-input.js'
import type { CommandContext } from '../command-context.js'
import { exitCodes } from '../failure.js'
import { numberBetween } from '../numbers.js'
import type { GlobalOptions } from '../options.js'
import { addServerOptions, type ServerFlags, serverLogin } from '../server-options.js'

type HealthOptions = GlobalOptions &
  ServerFlags &
  Readonly<{ config?: string; ready?: true; timeout: string }>

/** How one service stands. */
type Standing = Readonly<{ healthy: boolean; service: string; reasons: readonly string[] }>

class NotHealthyError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint: string
  constructor(file: string | undefined) {
    super(file === undefined ? 'no service of this user runs here' : `no service of this user runs ${file}`)
    this.hint = 'Start one with `gantry serve`; of another user, container or TMPDIR, ask it by --url.'
    this.name = 'NotHealthyError'
  }
}

export function healthCommand(context: CommandContext): Command {
  const command = new Command('health')
    .description(
      'whether the services that run here answer, whatever their ports and TLS are; 1 when one does not',
    )
    // Not by GANTRY_CONFIG: a service need not run what its surroundings name.
    .option('-c, --config <file>', 'only the services that run this pipeline file')
    .option('--ready', 'also whether each is ready')
    .option('--timeout <seconds>', 'longest for an answer', '3')
  return addServerOptions(command, 'ask the service at this address in place of those that run here').action(
    async (_, self: Command) => {
      const options = self.optsWithGlobals<HealthOptions>()
      const withinMs = numberBetween(options.timeout, '--timeout', 0.1, 600) * 1_000
      const standings =
        options.url === undefined
          ? await ofThisMachine(options, withinMs)
          : [await ofAddress(options.url, options, withinMs, context)]
      const healthy = standings.every((standing) => standing.healthy)
      tell(healthy, standings, options, context)
      if (!healthy) context.exit(exitCodes.runtime)
    },
  )
}

async function ofThisMachine(
  { config, ready }: HealthOptions,
  withinMs: number,
): Promise<readonly Standing[]> {
  const { askServices } = await import('../../processes/health-socket.js')
  const file = config === standardInput ? standardInputName : config && resolve(config)
  const asked = await askServices(withinMs)
  const found = asked.flatMap((one): Standing[] => {
    if ('silent' in one) return []
    const { telling } = one
    if (file !== undefined && telling.pipeline !== file) return []
    const closed = telling.closed === null ? [] : [telling.closed]
    return [
      {
        healthy: closed.length === 0 && (ready !== true || telling.ready),
        service: `${telling.name} at ${telling.httpUrl} (process ${telling.pid})`,
        reasons: [...closed, ...telling.reasons],
      },
    ]
  })
  // What a silent one runs is not known.
  const silent = file === undefined || found.length === 0 ? asked.filter((one) => 'silent' in one) : []
  const all = [
    ...found,
    ...silent.map((one) => ({ healthy: false, service: 'a service', reasons: [one.silent] })),
  ]
  if (all.length === 0) throw new NotHealthyError(file)
  return all
}

async function ofAddress(
  url: string,
  options: HealthOptions,
  withinMs: number,
  { terminal }: CommandContext,
): Promise<Standing> {
  const [{ askServer, reasonOfSocket }, { ServerUnreachableError }, { serverTarget }] = await Promise.all([
    import('../../tools/client/ask-server.js'),
    import('../../tools/client/client-errors.js'),
    import('../../tools/client/server-url.js'),
  ])
  const { url: base } = serverTarget(url, 'http')
  const question = {
    method: 'GET',
    ...serverLogin(options, terminal.env),
    signal: AbortSignal.timeout(withinMs),
  }
  const path = options.ready === true ? '/readyz' : '/healthz'
  const { status } = await askServer(base + path, question).catch((error: unknown) => {
    throw new ServerUnreachableError(base, reasonOfSocket(error), error)
  })
  const healthy = status === 200
  return { healthy, service: base, reasons: healthy ? [] : [`${path} answers with status ${status}`] }
}

function tell(
  healthy: boolean,
  standings: readonly Standing[],
  { json, quiet }: HealthOptions,
  { terminal }: CommandContext,
): void {
  if (json === true) return terminal.out(JSON.stringify({ healthy, services: standings }, undefined, 2))
  for (const standing of standings) {
    if (quiet === true && standing.healthy) continue
    const { service, reasons } = standing
    const why = reasons.length === 0 ? '' : `: ${reasons.join('; ')}`
    terminal.out(`${service} is ${standing.healthy ? 'healthy' : 'not healthy'}${why}`)
  }
}
