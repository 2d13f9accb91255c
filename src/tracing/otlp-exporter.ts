import type { SpanExporter } from '@opentelemetry/sdk-trace'
import { checkServerIdentity, type ConnectionOptions, createSecureContext } from 'node:tls'
import type { TracingTarget } from '../config/tracing.js'
import { ClientTls } from '../lifecycle/client-tls.js'
import type { PlainLog } from '../lifecycle/thread-log.js'

/** Where traces are taken over HTTP; the standard of OTLP. */
const tracesPath = '/v1/traces'

/** What sends spans to the endpoint of the settings; the library of its protocol alone is loaded. @throws GantryError */
export async function createExporter(target: TracingTarget, log: PlainLog): Promise<SpanExporter> {
  const tls = await new ClientTls(target.tls ?? true, 'tracing.tls', log).options()
  return target.protocol === 'grpc' ? grpcExporter(target, tls) : httpExporter(target, tls)
}

async function httpExporter(
  { endpoint, headers, timeoutMs }: TracingTarget,
  tls: ConnectionOptions | undefined,
): Promise<SpanExporter> {
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto')
  return new OTLPTraceExporter({
    url: tracesUrl(endpoint),
    headers: { ...headers },
    timeoutMillis: timeoutMs,
    httpAgentOptions: { keepAlive: true, ...tls },
  })
}

async function grpcExporter(
  { endpoint, headers, timeoutMs }: TracingTarget,
  tls: ConnectionOptions | undefined,
): Promise<SpanExporter> {
  const [{ OTLPTraceExporter }, { credentials, Metadata }] = await Promise.all([
    import('@opentelemetry/exporter-trace-otlp-grpc'),
    import('@grpc/grpc-js'),
  ])
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
  const { servername, ...files } = tls ?? {}
  const secure = () =>
    credentials.createFromSecureContext(createSecureContext(files), {
      ...(servername !== undefined && {
        checkServerIdentity: (_, certificate) => checkServerIdentity(servername, certificate),
      }),
    })
  return new OTLPTraceExporter({
    url: endpoint,
    metadata,
    timeoutMillis: timeoutMs,
    credentials: /^https:/i.test(endpoint) ? secure() : credentials.createInsecure(),
  })
}

/** A URL without a path is that of a collector, one with a path is used as it is. */
function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint)
  if (url.pathname === '/' && url.search === '') url.pathname = tracesPath
  return url.href
}
