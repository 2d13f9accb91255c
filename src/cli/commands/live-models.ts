import type { Command } from 'commander'
import { readTextFile } from '../../config/text-file.js'
import type { IndexEntry } from '../../serving/model-server.js'
import type { CommandContext } from '../command-context.js'
import type { GlobalOptions } from '../options.js'
import { addServerOptions, type ServerFlags, serverLogin } from '../server-options.js'
import { table } from '../table.js'
import { styled } from '../terminal.js'
import { UsageError } from '../failure.js'

type LoadOptions = GlobalOptions & ServerFlags & Readonly<{ config?: string }>
type UnloadOptions = GlobalOptions & ServerFlags & Readonly<{ unloadDependents?: true }>

const defaultUrl = 'http://127.0.0.1:8000'

/** Commands that change what a running service serves. */
export function addLiveCommands(models: Command, context: CommandContext): void {
  const ofService = (command: Command) => addServerOptions(command, 'the running service', defaultUrl)
  ofService(
    models
      .command('load <model>')
      .description('load a model into a running service, or load it anew; resolves when it serves')
      .option('--config <file>', 'configuration in place of its own: config.pbtxt, or JSON'),
  ).action(async (name: string, _, self: Command) => load(name, self.optsWithGlobals<LoadOptions>(), context))
  ofService(
    models
      .command('unload <model>')
      .description('end a model of a running service, once the requests in it are answered')
      .option('--unload-dependents', 'for an ensemble: also the models that were loaded for it alone'),
  ).action(async (name: string, _, self: Command) =>
    unload(name, self.optsWithGlobals<UnloadOptions>(), context),
  )
}

/** `gantry models list --url`. */
export async function listLive(options: GlobalOptions & ServerFlags, context: CommandContext): Promise<void> {
  const { terminal } = context
  const index = await (await clientOf(options, context)).index()
  terminal.out(
    options.json ? JSON.stringify({ models: index }, undefined, 2) : indexTable(index, terminal.color.out),
  )
}

async function load(name: string, options: LoadOptions, context: CommandContext): Promise<void> {
  const config = options.config === undefined ? undefined : await configOf(options.config)
  const client = await clientOf(options, context)
  await client.load(name, config)
  await report(name, await client.index(), options, context)
}

async function unload(name: string, options: UnloadOptions, context: CommandContext): Promise<void> {
  const client = await clientOf(options, context)
  const known = (await client.index()).some((entry) => entry.name === name)
  if (!known)
    throw new UsageError(
      `the service has no model "${name}"`,
      '`gantry models list --url URL` shows what it has.',
    )
  await client.unload(name, options.unloadDependents === true)
  await report(name, await client.index(), options, context)
}

async function report(
  name: string,
  index: readonly IndexEntry[],
  options: GlobalOptions,
  { terminal }: CommandContext,
): Promise<void> {
  const entries = index.filter((entry) => entry.name === name)
  if (options.json) terminal.out(JSON.stringify({ models: entries }, undefined, 2))
  else if (!options.quiet) terminal.out(indexTable(entries, terminal.color.out))
}

async function clientOf(flags: ServerFlags, { terminal }: CommandContext) {
  const { ModelServerClient } = await import('../model-server-client.js')
  return new ModelServerClient(flags.url ?? defaultUrl, serverLogin(flags, terminal.env))
}

/** JSON as it is; the text form as JSON. */
async function configOf(file: string): Promise<string> {
  const text = readText(file)
  if (text.trimStart().startsWith('{')) return text
  const { parseModelConfig } = await import('../../repository/model-config-text.js')
  return JSON.stringify(parseModelConfig(text, file))
}

function readText(file: string): string {
  try {
    return readTextFile(file)
  } catch (error) {
    throw new UsageError(
      `--config ${file}: ${error instanceof Error ? error.message : String(error)}`,
      'Name a config.pbtxt or a JSON file.',
    )
  }
}

function indexTable(index: readonly IndexEntry[], color: boolean): string {
  const head = ['MODEL', 'VERSION', 'STATE', 'REASON'].map((word) => styled(word, 'bold', color))
  const rows = index.map(({ name, version, state, reason }) => [
    name,
    version,
    styled(state === '' ? 'not loaded' : state, state === 'READY' ? 'green' : 'red', color),
    reason,
  ])
  return table(head, rows)
}
