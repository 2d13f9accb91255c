import { z } from 'zod'
import { cameraIdSchema } from '../config/camera.js'
import { detectionsMessageSchema } from '../messages/detections-message.js'

/** A query holds text; anything but plain digits is left for the schema to refuse. */
const limitText = z.preprocess(
  (given) => (typeof given === 'string' && /^\d{1,6}$/.test(given) ? Number(given) : given),
  z.number('must be a whole number, 1 to 1000').int().min(1).max(1000),
)

const timeText = z.iso.datetime({
  offset: true,
  error: 'must be an RFC 3339 time such as 2026-11-20T08:15:30Z',
})

/** Query of the lists of past results. All are text; the times include both ends. */
export const pastQuerySchema = z
  .strictObject({
    camera: cameraIdSchema.optional().describe('Only this camera.'),
    label: z.string().min(1).max(128).optional().describe('Only results in which this label was found.'),
    from: timeText.optional().describe('Not before this time.'),
    to: timeText.optional().describe('Not after this time.'),
    limit: limitText.default(100).describe('Most items of one page, 1 to 1000.'),
    cursor: z.string().min(1).max(512).optional().describe('`nextCursor` of the page before.'),
  })
  .refine((q) => q.from === undefined || q.to === undefined || Date.parse(q.from) <= Date.parse(q.to), {
    path: ['to'],
    message: 'must not be before "from"',
  })

const nextCursor = z
  .string()
  .optional()
  .describe('Give it as `cursor` for the next page; absent on the last.')

/** Nodes of a cluster that are not in an answer for all of them. */
export const incompleteSchema = z
  .array(z.string())
  .readonly()
  .optional()
  .describe(
    'Nodes of the cluster from which something may be missing here, each with the reason; absent where nothing is missing.',
  )

export const detectionsPageSchema = z
  .strictObject({ items: z.array(detectionsMessageSchema), nextCursor, incomplete: incompleteSchema })
  .describe('Results, newest first.')

export const eventsPageSchema = z
  .strictObject({
    items: z
      .array(z.strictObject({}))
      .max(0)
      .describe('Safety events. None arise in this version: rules are not available yet.'),
    nextCursor,
  })
  .describe('Events, newest first.')
