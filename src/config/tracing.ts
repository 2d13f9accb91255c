import { z } from 'zod'
import { clientTlsSchema } from './client-tls.js'

/** Headers that belong to the connection or to what is sent over it. */
const fixedHeaders =
  /^(host|content-(type|length|encoding)|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|user-agent|grpc-.*|:.*)$/i

const tracingHeadersSchema = z
  .record(
    z
      .string()
      .regex(/^[0-9A-Za-z_.-]+$/, 'must be the name of a header')
      .refine((name) => !fixedHeaders.test(name), 'is a header that the service writes itself')
      .refine((name) => !/-bin$/i.test(name), 'ends in -bin, which gRPC keeps for bytes'),
    z.string().regex(/^[\x20-\x7e]*$/, 'must be one line of ASCII text'),
  )
  .default({})

export const tracingSchema = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe('`false`: nothing is traced, whatever `OTEL_*` variables say.'),
    endpoint: z
      .string()
      .refine((url) => endpointFault(url) === undefined, {
        error: ({ input }) => endpointFault(String(input)) ?? '',
      })
      .optional()
      .describe(
        'http:// or https:// URL of what collects traces by OTLP: `http://collector:4318`, for gRPC `http://collector:4317`. With http/protobuf `/v1/traces` is added where it has no path. Without it nothing is traced.',
      ),
    protocol: z.enum(['http/protobuf', 'grpc']).default('http/protobuf').describe('How spans are sent.'),
    sampling: z
      .number()
      .min(0)
      .max(1)
      .default(0.01)
      .describe('Part of the frames, and of the requests that bring no trace along, that is traced.'),
    followParent: z
      .boolean()
      .default(true)
      .describe(
        'A request with `traceparent` goes on with that trace, and is traced if and only if that says so. `false`, for clients that are not trusted: it begins a trace of its own, with a link, and `sampling` decides.',
      ),
    serviceName: z.string().min(1).max(255).default('gantry').describe('`service.name` of all spans.'),
    headers: tracingHeadersSchema.describe(
      'Headers, or metadata of gRPC, such as `authorization`. Write ${NAME} or ${file:PATH} for what is secret.',
    ),
    tls: clientTlsSchema
      .optional()
      .describe('Whom to trust and who we are, for an https:// URL. The files are read at the start.'),
    timeoutMs: z
      .number()
      .int()
      .min(100)
      .max(60_000)
      .default(10_000)
      .describe('Longest that a batch of spans is tried on; it is lost then.'),
  })
  .superRefine(({ endpoint, protocol, tls }, context) => {
    if (endpoint === undefined || endpointFault(endpoint) !== undefined) return
    const { pathname, search } = new URL(endpoint)
    if (protocol === 'grpc' && (pathname !== '/' || search !== ''))
      context.addIssue({
        code: 'custom',
        path: ['endpoint'],
        message: 'has a path, and gRPC takes none: write host and port alone, or set protocol: http/protobuf',
      })
    if (tls !== undefined && /^http:/i.test(endpoint))
      context.addIssue({
        code: 'custom',
        path: ['tls'],
        message: 'is for an https:// URL, and endpoint is http://',
      })
  })
export type TracingConfig = Readonly<z.infer<typeof tracingSchema>>

/** Where spans go. */
export type TracingTarget = Readonly<
  Pick<TracingConfig, 'protocol' | 'headers' | 'tls' | 'timeoutMs'> & { endpoint: string }
>

export function isTracingOn(config: TracingConfig): config is TracingConfig & TracingTarget {
  return config.enabled && config.endpoint !== undefined
}

/** Never shows the text: it may hold a token. */
function endpointFault(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text))
    return 'must be an http:// or https:// URL, such as http://collector:4318'
  const url = new URL(text)
  if (url.username !== '' || url.password !== '')
    return 'must hold no login: write it as the header authorization, in headers'
  if (url.hash !== '') return 'must not have a part behind "#": nobody is sent it'
  return undefined
}
