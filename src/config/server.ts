import { z } from 'zod'
import { allowedHostFault } from './allowed-host.js'

/** Characters of a token. */
export const shortestToken = 16

const portSchema = z.number().int().min(0).max(65_535)

const allowedHostSchema = z.string().superRefine((entry, context) => {
  const message = allowedHostFault(entry)
  if (message !== undefined) context.addIssue({ code: 'custom', message })
})

/** Whoever writes the PEM itself there, from a variable for instance, is told. */
const pemPath = (setting: string) =>
  z
    .string({
      error: ({ input }) =>
        input === undefined
          ? `missing: TLS needs a certificate and its key; name the PEM file in server.tls.${setting}`
          : undefined,
    })
    .min(1)
    .refine((path) => !path.includes('-----BEGIN'), 'holds PEM itself; write it into a file and name that')

const tlsSchema = z.strictObject({
  cert: pemPath('cert').describe('PEM file of the certificate, with the intermediate ones behind it.'),
  key: pemPath('key').describe('PEM file of its private key, without a passphrase.'),
  clientCa: pemPath('clientCa')
    .optional()
    .describe('PEM file of the CA that clients need a certificate of. Without it they need none.'),
})
export type ServerTls = Readonly<z.infer<typeof tlsSchema>>

export const serverSchema = z.strictObject({
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('Address to listen on. Anything but loopback needs a token.'),
  httpPort: portSchema.default(8000).describe('HTTP, WebSocket and dashboard; 0 takes a free port.'),
  grpcPort: portSchema.default(8001).describe('gRPC of the model server (KServe v2); 0 takes a free port.'),
  metricsPort: portSchema
    .default(8002)
    .describe(
      'A second listener with /metrics only; 0 takes a free port, that of `httpPort` does without it.',
    ),
  gpuMetricsIntervalMs: z
    .number()
    .int()
    .min(0)
    .max(60_000)
    .refine((ms) => ms === 0 || ms >= 100, 'must be 0 or at least 100')
    .default(2_000)
    .describe(
      'From one reading of the GPU (nvidia-smi) for `nv_gpu_*` to the next, 100 at least; 0 reads nothing.',
    ),
  token: z
    .string()
    .min(shortestToken)
    // In a header the token ends at the first space, and control characters are no part of one.
    .refine(
      (token) => !/\s|\p{Cc}/u.test(token),
      'holds a space or a control character, which no client can send; make one of letters and digits: openssl rand -hex 24',
    )
    .optional()
    .describe('Bearer token every request must carry. Write ${NAME} or ${file:PATH}, not the token itself.'),
  insecure: z
    .boolean()
    .default(false)
    .describe('Allow a public address without a token. Anyone who can connect is admin.'),
  tls: tlsSchema
    .optional()
    .describe(
      'Ends TLS on all ports: page, API, stream, `/v2`, metrics and gRPC. The files are read again when they change.',
    ),
  allowedOrigins: z
    .array(z.string())
    .default([])
    .describe('Browser origins besides our own that may use the API.'),
  allowedHosts: z
    .array(allowedHostSchema)
    .default([])
    .describe(
      'Names and addresses, without port, under which this service is reached: behind a proxy, in a cluster. `.example.com` is the domain and all below it. Browsers, and every client where there is no token, may use no other name; programs with the token may use any.',
    ),
  maxBodyBytes: z
    .number()
    .int()
    .min(1024)
    .max(1024 ** 3)
    .default(10 * 1024 * 1024)
    .describe('Largest body of a request, such as a pushed picture.'),
  maxRequestsPerMinute: z
    .number()
    .int()
    .min(0)
    .max(10_000_000)
    .default(6_000)
    .describe('Most requests of one address to the API; more are answered 429. 0 sets no limit.'),
  maxStreamClients: z
    .number()
    .int()
    .min(1)
    .max(20_000)
    .default(5_000)
    .describe('Most WebSocket clients at a time.'),
  drainSeconds: z
    .number()
    .min(0)
    .max(3_600)
    .default(25)
    .describe(
      'Longest that a service which is asked to stop goes on answering the requests it has and delivering the results it has; it ends earlier when that is done. Whatever supervises it must grant 10 s more.',
    ),
})
export type ServerConfig = z.infer<typeof serverSchema>
