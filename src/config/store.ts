import { z } from 'zod'

const defaultMaxBytes = 1024 ** 3
const defaultMaxAge = '7d'
const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

export const storeSchema = z.strictObject({
  path: z.string().default('./data').describe('Folder for what must survive a restart.'),
  durability: z
    .strictObject({
      detections: z
        .enum(['outbox', 'memory'])
        .default('outbox')
        .describe(
          '`outbox`: results are stored before anybody is told of them, and are delivered also after a crash. `memory`: what was not delivered is lost with the process.',
        ),
      events: z
        .literal('always')
        .default('always')
        .describe('Events are on the disk before anybody is told of them: they outlast a loss of power.'),
    })
    .prefault({}),
  maxBytes: z
    .number()
    .int()
    .min(1024 ** 2)
    .optional()
    .describe('Bytes of stored results; then the oldest go, delivered or not; default: 1 GiB. Events stay.'),
  maxAge: z
    .union([
      z.number().int().min(1),
      z
        .string()
        .regex(/^[1-9]\d{0,6}[smhd]$/, 'must be a number of seconds, or such as "36h", "90m" or "7d"'),
    ])
    .optional()
    .describe(
      'Age at which results and events go: seconds, or such as `36h`, `7d`; default: `7d`. It is time that the machine was on, by no clock.',
    ),
})
export type StoreConfig = Readonly<z.infer<typeof storeSchema>>

/** What the store may hold. */
export function storeBounds({
  maxBytes,
  maxAge = defaultMaxAge,
}: StoreConfig): Readonly<{ maxBytes: number; maxAgeMs: number }> {
  return { maxBytes: maxBytes ?? defaultMaxBytes, maxAgeMs: maxAgeMsOf(maxAge) }
}

function maxAgeMsOf(maxAge: number | string): number {
  if (typeof maxAge === 'number') return maxAge * unitMs.s
  return Number.parseInt(maxAge, 10) * unitMs[maxAge.slice(-1) as keyof typeof unitMs]
}
