import type { ConfigProblem } from './config-error.js'
import type { Override } from './environment.js'

type Environment = Readonly<Record<string, string | undefined>>
type FromOtel = Readonly<{ overrides: readonly Override[]; problems: readonly ConfigProblem[] }>

const tracesPath = 'v1/traces'

/**
 * Settings of `tracing` by the variables that every program with OpenTelemetry reads. They say what neither the file, nor a
 * `GANTRY__` variable, nor a flag says; without an endpoint they say nothing at all, as they may be meant for others.
 *
 * @param given - what `tracing` has already.
 * @see https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export function overridesOfOtel(given: unknown, env: Environment): FromOtel {
  const nothing = { overrides: [], problems: [] }
  const section = given ?? {}
  if (typeof section !== 'object' || Array.isArray(section)) return nothing
  const has = (key: string) => Object.hasOwn(section, key)
  const isOff = valueOf(env, 'OTEL_SDK_DISABLED')?.value.toLowerCase() === 'true'
  const exporter = valueOf(env, 'OTEL_TRACES_EXPORTER')
  if (isOff || exporter?.value.toLowerCase() === 'none') {
    const name = isOff ? 'OTEL_SDK_DISABLED' : 'OTEL_TRACES_EXPORTER'
    return has('enabled') ? nothing : { overrides: [override('enabled', false, name)], problems: [] }
  }
  const endpoint = endpointOf(env, section)
  if (!has('endpoint') && endpoint === undefined) return nothing
  const read = [endpoint, ...plainSettings(env), headersOf(env), samplingOf(env), tlsOf(env)]
  const problems = read.flatMap((one) => (one !== undefined && 'problem' in one ? one.problem : []))
  const overrides = read.flatMap((one) =>
    one === undefined || 'problem' in one || has(String(one.path[1])) ? [] : one,
  )
  return { overrides, problems }
}

type Read = Override | Readonly<{ problem: ConfigProblem }> | undefined

/** The base URL of all signals; the URL of traces alone is used as it is. */
function endpointOf(env: Environment, section: object): Read {
  const ofTraces = valueOf(env, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
  if (ofTraces) return override('endpoint', ofTraces.value, ofTraces.name)
  const base = valueOf(env, 'OTEL_EXPORTER_OTLP_ENDPOINT')
  if (base === undefined) return undefined
  const written = 'protocol' in section ? section.protocol : protocolOf(env)?.value
  if (written === 'grpc' || !URL.canParse(base.value)) return override('endpoint', base.value, base.name)
  const url = new URL(base.value)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/${tracesPath}`
  return override('endpoint', url.href, base.name)
}

function protocolOf(env: Environment) {
  return valueOf(env, 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? valueOf(env, 'OTEL_EXPORTER_OTLP_PROTOCOL')
}

function plainSettings(env: Environment): Read[] {
  const timeout =
    valueOf(env, 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT') ?? valueOf(env, 'OTEL_EXPORTER_OTLP_TIMEOUT')
  const service = valueOf(env, 'OTEL_SERVICE_NAME') ?? serviceOf(env)
  const protocol = protocolOf(env)
  return [
    protocol && override('protocol', protocol.value, protocol.name),
    service && override('serviceName', service.value, service.name),
    timeout && override('timeoutMs', numberOr(timeout.value), timeout.name),
  ]
}

/** The name as one of the attributes. */
function serviceOf(env: Environment): ReturnType<typeof valueOf> {
  const name = 'OTEL_RESOURCE_ATTRIBUTES'
  const value = /(?:^|,)\s*service\.name\s*=([^,]+)/.exec(env[name] ?? '')?.[1]?.trim()
  return value === undefined || value === '' ? undefined : { name, value }
}

/** `name=value,name=value`, each of them percent-encoded. */
function headersOf(env: Environment): Read {
  const found =
    valueOf(env, 'OTEL_EXPORTER_OTLP_TRACES_HEADERS') ?? valueOf(env, 'OTEL_EXPORTER_OTLP_HEADERS')
  if (found === undefined) return undefined
  const pairs = found.value.split(',').flatMap((pair) => {
    const at = pair.indexOf('=')
    const parts = at < 0 ? ['', ''] : [pair.slice(0, at), pair.slice(at + 1)]
    return pair.trim() === '' ? [] : [parts.map((part) => part.trim())]
  })
  try {
    if (pairs.some(([name]) => name === '')) throw new URIError('a pair has no name')
    const headers = pairs.map((pair) => pair.map((part) => decodeURIComponent(part)))
    return override('headers', Object.fromEntries(headers) as Record<string, string>, found.name)
  } catch {
    return problem(found.name, 'is no list name=value,name=value with percent-encoded values')
  }
}

function samplingOf(env: Environment): Read {
  const sampler = valueOf(env, 'OTEL_TRACES_SAMPLER')
  if (sampler === undefined) return undefined
  const kind = sampler.value.toLowerCase().replace(/^parentbased_/, '')
  if (kind === 'always_on') return override('sampling', 1, sampler.name)
  if (kind === 'always_off') return override('sampling', 0, sampler.name)
  if (kind !== 'traceidratio')
    return problem(sampler.name, `"${sampler.value}" is no sampler that is known here`)
  const ratio = valueOf(env, 'OTEL_TRACES_SAMPLER_ARG')
  return override('sampling', ratio === undefined ? 1 : numberOr(ratio.value), ratio?.name ?? sampler.name)
}

function tlsOf(env: Environment): Read {
  const files = [
    ['ca', 'CERTIFICATE'],
    ['cert', 'CLIENT_CERTIFICATE'],
    ['key', 'CLIENT_KEY'],
  ].flatMap(([setting = '', variable = '']) => {
    const found =
      valueOf(env, `OTEL_EXPORTER_OTLP_TRACES_${variable}`) ?? valueOf(env, `OTEL_EXPORTER_OTLP_${variable}`)
    return found === undefined ? [] : [{ ...found, setting }]
  })
  const [first] = files
  if (first === undefined) return undefined
  return override('tls', Object.fromEntries(files.map(({ setting, value }) => [setting, value])), first.name)
}

/** An empty one is as if it were not set. */
function valueOf(env: Environment, name: string): Readonly<{ name: string; value: string }> | undefined {
  const value = env[name]?.trim() ?? ''
  return value === '' ? undefined : { name, value }
}

/** Text that is no number is complained about where settings are checked. */
function numberOr(text: string): number | string {
  return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text
}

function override(key: string, value: unknown, name: string): Override {
  return { path: ['tracing', key], value, file: 'environment', name }
}

function problem(name: string, message: string): Read {
  return {
    problem: {
      file: 'environment',
      path: name,
      message,
      hint: 'correct or unset it, or set OTEL_SDK_DISABLED=true',
    },
  }
}
