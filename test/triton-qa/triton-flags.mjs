import { parseArgs } from 'node:util'

/** Flags of `tritonserver` that say nothing here: where its backends lie, what Gantry has always or has not. */
const without = new Set([
  'backend-directory',
  'backend-config',
  'log-verbose',
  'strict-model-config',
  'disable-auto-complete-config',
  'allow-http',
  'allow-grpc',
  'allow-metrics',
])

/** The last value of each flag, and all of those that may come several times. */
function valuesOf(args) {
  const { tokens } = parseArgs({ args: [...args], strict: false, tokens: true, allowPositionals: true })
  const values = new Map()
  let open
  for (const token of tokens) {
    if (token.kind === 'option') {
      open = token.value === undefined ? token.name : undefined
      values.set(token.name, [...(values.get(token.name) ?? []), token.value ?? 'true'])
    } else if (token.kind === 'positional' && open !== undefined) {
      values.get(open).splice(-1, 1, token.value)
      open = undefined
    }
  }
  return values
}

/**
 * What `tritonserver` would be told by these flags, as a pipeline of Gantry without cameras.
 *
 * @param {readonly string[]} args - Flags as Triton's suites write them: `--name=value` or `--name value`.
 */
export function pipelineOf(args) {
  const values = valuesOf(args)
  const used = new Set()
  const all = (name) => {
    used.add(name)
    return values.get(name) ?? []
  }
  const last = (name, otherwise) => all(name).at(-1) ?? otherwise
  const isOn = (name, otherwise) => last(name, String(otherwise)) !== 'false'
  const number = (name) => (values.has(name) ? Number(last(name)) : undefined)
  const pollSeconds = number('repository-poll-secs') ?? 0
  const pipeline = {
    apiVersion: 'gantry/v1',
    engines: 0,
    server: {
      httpPort: number('http-port') ?? 8000,
      grpcPort: number('grpc-port') ?? 8001,
      metricsPort: number('metrics-port') ?? 8002,
      drainSeconds: number('exit-timeout-secs') ?? 30,
    },
    models: {
      repository: [...all('model-repository'), ...all('model-store')],
      control: last('model-control-mode', pollSeconds > 0 ? 'poll' : 'none'),
      load: all('load-model'),
      pollSeconds: pollSeconds > 0 ? pollSeconds : undefined,
      loadsAtATime: number('model-load-thread-count'),
      configName: last('model-config-name'),
      exitOnError: isOn('exit-on-error', true),
      strictReadiness: isOn('strict-readiness', true),
      allowJsBackends: true,
    },
    modelServer: {
      serverName: last('id', 'triton'),
      sharedMemory: isOn('allow-client-shm', false),
      probe: { enabled: false },
    },
    log: { level: 'debug' },
  }
  const unknown = [...values.keys()]
    .filter((name) => !used.has(name) && !without.has(name))
    .map((name) => `--${name}`)
  return { pipeline, unknown }
}
