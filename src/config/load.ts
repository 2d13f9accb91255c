import { dirname, resolve } from 'node:path'
import type { ZodError } from 'zod'
import { tlsFileComplaints, withAbsoluteTlsPaths } from './client-tls.js'
import { cameraFaults } from './camera-setting-faults.js'
import { ConfigError, type ConfigProblem } from './config-error.js'
import { overridesOfEnvironment, overridesOfFlags, type FlagSetting, type Override } from './environment.js'
import { interpolate, mapStrings, type TextSources } from './interpolate.js'
import type { MirrorConfig, ModelServerConfig } from './models.js'
import { overridesOfOtel } from './otel-environment.js'
import { duplicateCameras, pipelineSchema, type PipelineConfig } from './pipeline.js'
import type { ServerConfig, ServerTls } from './server.js'
import { serverTlsFaults } from './server-tls.js'
import { complaintsOf, type Complaint } from './schema-problem.js'
import { schemaAt, valueOfText } from './schema-walk.js'
import { isOfLogin } from './redact.js'
import { readPipelineText } from './pipeline-text.js'
import { isS3Url } from './s3-url.js'
import { formatPath, getAt, listTooShort, setAt, type SettingPath } from './setting-path.js'
import { readTextFile } from './text-file.js'
import { standardInput, standardInputName } from './standard-input.js'
import { YamlDocument } from './yaml-document.js'

/** Settings ready for use, with the folder that relative paths of cameras start from. */
export type LoadedPipeline = Readonly<{
  /** Paths of `models.repository`, `models.mirror.path`, `store.path`, `modelServer.trace.dir` and `mediaRoot` are absolute. */
  config: PipelineConfig
  /** Absolute, or `<stdin>`; undefined when no file was given. */
  path: string | undefined
  /** Absolute: the folder of the file, or the working directory where it lies in none. */
  baseDir: string
}>

/** Where settings come from besides the file. Flags go over the environment, that over the file, that over defaults. */
export type SettingSources = Readonly<{
  flags?: readonly FlagSetting[]
  env?: Readonly<Record<string, string | undefined>>
  /** The files of `server.tls` are looked at, too: who does not serve may have no right to them. */
  toServe?: boolean
}>

/**
 * Reads, merges and checks the settings.
 *
 * @param path - the pipeline file, relative to the working directory, or `-` for what was read of standard input. Without it, settings come
 *   from elsewhere only.
 * @throws ConfigError `GANTRY_CONFIG` with every problem there is, each with its place.
 */
export function loadPipeline(
  path: string | undefined,
  { flags = [], env = {}, toServe = false }: SettingSources = {},
): LoadedPipeline {
  const name = path === standardInput ? standardInputName : path
  const absolute = path === undefined || path === standardInput ? undefined : resolve(path)
  const baseDir = absolute === undefined || isPipe(absolute) ? process.cwd() : dirname(absolute)
  const sources: TextSources = {
    env,
    readFile: (file) => readTextFile(resolve(baseDir, file)).replace(/\r?\n$/, ''),
  }
  const document = new YamlDocument(
    name ?? 'settings',
    path === undefined ? 'apiVersion: gantry/v1' : readPipelineText(path),
  )
  const config = checked(document, flags, sources, baseDir, toServe)
  return { config, path: absolute ?? name, baseDir }
}

/** What a shell names for `<(...)`, and standard input by its file. */
function isPipe(path: string): boolean {
  return /^\/(?:dev|proc)\//.test(path)
}

function checked(
  document: YamlDocument,
  flags: readonly FlagSetting[],
  sources: TextSources,
  baseDir: string,
  toServe: boolean,
): PipelineConfig {
  const broken = document.problems()
  if (broken.length > 0) throw new ConfigError(broken)

  const fromEnvironment = overridesOfEnvironment(pipelineSchema, sources)
  const fromFlags = overridesOfFlags(pipelineSchema, flags)
  const ours = [...fromEnvironment.overrides, ...fromFlags.overrides]
  const overridden = (path: SettingPath) => ours.some((override) => startsWith(path, override.path))

  const { values, unfilled } = filledIn(document, sources, overridden)
  keepTokenFile(values, document)
  const beyond = ours.flatMap((override) => laidOver(values, override) ?? [])
  const fromOtel = overridesOfOtel(values['tracing'], sources.env)
  const overrides = [...fromOtel.overrides, ...ours]
  for (const { path, value } of fromOtel.overrides) setAt(values, path, value)

  const result = pipelineSchema.safeParse(values)
  const complaints = (result.error?.issues ?? [])
    .flatMap((issue) => complaintsOf(issue, pipelineSchema, values))
    .concat(result.success ? [] : unseenDuplicates(result.error, values))
    .concat(faultsOfCameras(values))
    // Text left behind by an unset variable would only be complained about once more.
    .filter(({ path }) => !unfilled.some((left) => startsWith(path, left.path)))
  const problems = [
    ...fromEnvironment.problems,
    ...fromFlags.problems,
    ...fromOtel.problems,
    ...beyond,
    ...[...unfilled, ...complaints].map((complaint) => placed(complaint, document, overrides)),
  ]
  if (!result.success || problems.length > 0) throw new ConfigError(inOrder(problems))
  const config = withAbsolutePaths(result.data, overrides, baseDir)
  const ofFiles = fileComplaints(config, toServe).map((complaint) => placed(complaint, document, overrides))
  if (ofFiles.length > 0) throw new ConfigError(inOrder(ofFiles))
  return config
}

/** Files that settings name and that are looked at before anything starts. */
function fileComplaints(config: PipelineConfig, toServe: boolean): Complaint[] {
  const { tokenFile } = config.sinks.kafka?.sasl ?? {}
  const fault = tokenFile === undefined ? undefined : tokenFileFault(tokenFile)
  const path = ['sinks', 'kafka', 'sasl', 'tokenFile']
  return [
    ...tlsFileComplaints(config),
    ...(fault === undefined ? [] : [{ path, aboutKey: false, ...fault }]),
    ...(toServe ? faultsOfServerTls(config.server.tls) : []),
  ]
}

function tokenFileFault(path: string): Pick<Complaint, 'message' | 'hint'> | undefined {
  try {
    if (readTextFile(path).trim() !== '') return undefined
    return { message: `${path} is empty`, hint: 'write the token into it' }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { message: `cannot read the token: ${reason}`, hint: 'name a file that holds the token alone' }
  }
}

/** Sets the value; a list can be continued, not begun in the middle. */
function laidOver(
  values: Record<string, unknown>,
  { path, value, file, name }: Override,
): ConfigProblem | undefined {
  const short = listTooShort(values, path)
  if (short === undefined) return void setAt(values, path, value)
  const { list, entries } = short
  const count = entries === 0 ? 'no entries' : entries === 1 ? '1 entry' : `${entries} entries`
  const next = formatPath([...list, entries])
  return { file, path: name, message: `${formatPath(list)} has ${count}`, hint: `the next is ${next}` }
}

/** What is written in a "${...}" that is none may be a piece of a password. */
function withoutText<T extends { message: string }>(complaint: T): T {
  return {
    ...complaint,
    message: complaint.message.replace(/^".*" (?=is not understood$)/s, 'a "${...}" in it '),
  }
}

/** A token that is read from a file stays one: whoever renews it writes the file again. */
function keepTokenFile(values: Record<string, unknown>, document: YamlDocument): void {
  const login = ['sinks', 'kafka', 'sasl']
  const written = getAt(document.values(), [...login, 'token'])
  const file = typeof written === 'string' ? /^\$\{file:([^}]+)\}$/.exec(written.trim())?.[1] : undefined
  const section = getAt(values, login)
  if (file === undefined || !isSection(section) || section['tokenFile'] !== undefined) return
  delete section['token']
  section['tokenFile'] = file
}

type Filled = Readonly<{ values: Record<string, unknown>; unfilled: readonly Complaint[] }>

/** The values of the file with `${...}` filled in; what another source sets anyway is left alone. */
function filledIn(
  document: YamlDocument,
  sources: TextSources,
  overridden: (path: SettingPath) => boolean,
): Filled {
  const unfilled: Complaint[] = []
  const values = mapStrings(document.values(), (text, path) => {
    if (overridden(path)) return text
    const filled = interpolate(text, sources)
    const complaints = path.some((step) => isOfLogin(String(step)))
      ? filled.complaints.map(withoutText)
      : filled.complaints
    unfilled.push(...complaints.map((complaint) => ({ path, aboutKey: false, ...complaint })))
    return filled.text === text ? text : valueOfText(schemaAt(pipelineSchema, path), filled.text)
  })
  if (isSection(values)) return { values, unfilled }
  throw new ConfigError([
    { file: document.file, line: 1, column: 1, path: '', message: 'must be a section of settings' },
  ])
}

/** The schema compares cameras only once each of them is right by itself; all problems are to be told at once. */
function unseenDuplicates(error: ZodError, { cameras }: Record<string, unknown>): Complaint[] {
  if (error.issues.some(({ code, path }) => code === 'custom' && path[0] === 'cameras' && path[2] === 'id'))
    return []
  return duplicateCameras(cameras).map((duplicate) => ({ ...duplicate, aboutKey: false }))
}

/** Clients of the API get these as errors of their own; here they belong among the other problems. */
function faultsOfCameras({ cameras }: Record<string, unknown>): Complaint[] {
  if (!Array.isArray(cameras)) return []
  return cameras.flatMap((camera: unknown, index) =>
    cameraFaults(camera).map(({ setting, problem, fix }) => {
      const hint = fix.replace(/\.$/, '').replace(/^./, (first) => first.toLowerCase())
      return { path: ['cameras', index, setting], aboutKey: false, message: problem, hint }
    }),
  )
}

function isSection(values: unknown): values is Record<string, unknown> {
  return typeof values === 'object' && values !== null && !Array.isArray(values)
}

/** A complaint at the place a person has to change: the flag, the variable, or the line of the file. */
function placed(complaint: Complaint, document: YamlDocument, overrides: readonly Override[]): ConfigProblem {
  const { path, aboutKey, ...words } = complaint
  const override =
    overrides.findLast((candidate) => startsWith(path, candidate.path)) ?? madeBy(path, document, overrides)
  if (override) {
    const rest = formatPath(path)
    const within = rest !== formatPath(override.path) ? { message: `${rest}: ${words.message}` } : {}
    return { file: override.file, path: override.name, ...words, ...within }
  }
  const place = aboutKey ? document.placeOfKey(path) : document.placeOf(path)
  return { file: document.file, ...place, path: formatPath(path), ...words }
}

/** What gave the first setting of an entry that the file does not have. */
function madeBy(
  path: SettingPath,
  document: YamlDocument,
  overrides: readonly Override[],
): Override | undefined {
  const entry = path.slice(0, path.findLastIndex((step) => typeof step === 'number') + 1)
  if (entry.length === 0 || document.has(entry)) return undefined
  return overrides.find((candidate) => startsWith(candidate.path, entry))
}

function startsWith(path: SettingPath, start: SettingPath): boolean {
  return start.every((step, index) => path[index] === step)
}

function inOrder(problems: readonly ConfigProblem[]): ConfigProblem[] {
  return problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
}

function faultsOfServerTls(tls: ServerTls | undefined): Complaint[] {
  if (tls === undefined) return []
  return serverTlsFaults(tls).map(({ setting, message, hint }) => ({
    path: ['server', 'tls', setting],
    aboutKey: false,
    message,
    hint,
  }))
}

/** The folders of `models.repository`, and `s3://` URLs where none took the place of theirs, whether it is one or a list. */
export function repositoriesOf({ models: { repository } }: PipelineConfig): readonly string[] {
  return typeof repository === 'string' ? [repository] : repository
}

/** Paths of the file start at its folder, as its reader expects; those of flags and environment at the working directory. */
function withAbsolutePaths(
  config: PipelineConfig,
  overrides: readonly Override[],
  baseDir: string,
): PipelineConfig {
  const base = (...path: string[]) =>
    overrides.some((override) => startsWith(path, override.path)) ? process.cwd() : baseDir
  const resolved = withAbsoluteTlsPaths(config, (path) => base(...path.map(String)))
  const { repository } = config.models
  const folder = (path: string) => (isS3Url(path) ? path : resolve(base('models', 'repository'), path))
  return {
    ...resolved,
    mediaRoot: resolve(base('mediaRoot'), config.mediaRoot ?? baseDir),
    models: {
      ...resolved.models,
      repository: typeof repository === 'string' ? folder(repository) : repository.map(folder),
      mirror: withMirrorPath(config.models.mirror, base('models', 'mirror', 'path')),
    },
    server: withTlsPaths(config.server, (file) => base('server', 'tls', file)),
    store: { ...config.store, path: resolve(base('store', 'path'), config.store.path) },
    modelServer: withTraceDir(config.modelServer, base('modelServer', 'trace', 'dir')),
  }
}

function withTlsPaths(server: ServerConfig, base: (file: keyof ServerTls) => string): ServerConfig {
  if (server.tls === undefined) return server
  const { cert, key, clientCa } = server.tls
  return {
    ...server,
    tls: {
      cert: resolve(base('cert'), cert),
      key: resolve(base('key'), key),
      ...(clientCa !== undefined && { clientCa: resolve(base('clientCa'), clientCa) }),
    },
  }
}

function withMirrorPath(mirror: MirrorConfig, base: string): MirrorConfig {
  return mirror.path === undefined ? mirror : { ...mirror, path: resolve(base, mirror.path) }
}

function withTraceDir(modelServer: ModelServerConfig, base: string): ModelServerConfig {
  const { dir } = modelServer.trace
  if (dir === undefined) return modelServer
  return { ...modelServer, trace: { ...modelServer.trace, dir: resolve(base, dir) } }
}
