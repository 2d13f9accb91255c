import { z } from 'zod'

/** Longest that a timer of Node takes; here it says never. */
const never = 2 ** 31 - 1
/** Ages are spread by a tenth. */
const mostAgeMs = 1_900_000_000

/** How connections of gRPC clients are kept and ended. */
export const grpcConnectionsSchema = z
  .strictObject({
    keepaliveTimeMs: z
      .number()
      .int()
      .min(100)
      .max(never)
      .default(7_200_000)
      .describe(
        `From one ping to the next that asks whether a client is still there; ${never} never asks. Triton: \`--grpc-keepalive-time\`.`,
      ),
    keepaliveTimeoutMs: z
      .number()
      .int()
      .min(100)
      .max(never)
      .default(20_000)
      .describe(
        'Longest that a client takes to answer a ping; after that its connection is cut. Triton: `--grpc-keepalive-timeout`.',
      ),
    keepaliveWithoutCalls: z
      .boolean()
      .default(true)
      .describe(
        'Ping clients, and let them ping, also while they have no call under way. `false` waits for calls, and counts a ping without one within two hours of the last as one too many. Triton: `--grpc-keepalive-permit-without-calls`, false there.',
      ),
    maxPingStrikes: z
      .number()
      .int()
      .min(0)
      .max(never)
      .default(0)
      .describe(
        'Pings of a client that come too soon, until its connection is ended with `too_many_pings`; 0: any number. Triton: `--grpc-http2-max-ping-strikes`, 2 there.',
      ),
    minPingIntervalMs: z
      .number()
      .int()
      .min(0)
      .max(never)
      .default(300_000)
      .describe(
        'With `maxPingStrikes`: a ping comes too soon so long after the last, where nothing was sent to the client in between. Triton: `--grpc-http2-min-recv-ping-interval-without-data`.',
      ),
    maxConnectionAgeMs: z
      .number()
      .int()
      .min(100)
      .max(mostAgeMs)
      .optional()
      .describe(
        'Age at which a connection takes no new calls and its client opens another, so that load spreads over new servers; a tenth more or less. Without it none is too old. Triton: `--grpc-max-connection-age`.',
      ),
    maxConnectionAgeGraceMs: z
      .number()
      .int()
      .min(0)
      .max(never)
      .optional()
      .describe(
        'With `maxConnectionAgeMs`: longest that calls of such a connection go on before they are cut. Without it they go on to their end. Triton: `--grpc-max-connection-age-grace`.',
      ),
  })
  .superRefine(({ maxConnectionAgeMs, maxConnectionAgeGraceMs }, context) => {
    if (maxConnectionAgeGraceMs === undefined || maxConnectionAgeMs !== undefined) return
    const message = 'needs maxConnectionAgeMs: without it no connection is too old'
    context.addIssue({ code: 'custom', path: ['maxConnectionAgeGraceMs'], message })
  })
export type GrpcConnections = Readonly<z.infer<typeof grpcConnectionsSchema>>
