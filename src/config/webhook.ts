import { z } from 'zod'
import { clientTlsSchema } from './client-tls.js'
import { commonSinkFields } from './sink-filter.js'

/** Begins a secret of Standard Webhooks that is base64. */
const secretPrefix = 'whsec_'

const secretSchema = z
  .string()
  .min(1)
  .refine(
    (secret) => !secret.startsWith(secretPrefix) || isBase64(secret.slice(secretPrefix.length)),
    `begins with ${secretPrefix}, and what follows is not base64: copy all of it, or take a text of your own`,
  )

/** Headers that are ours to write, or that belong to the connection. */
const ownHeaders =
  /^(host|content-(type|length|encoding)|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|ce-.*|webhook-.*)$/i

const headersSchema = z
  .record(
    z
      .string()
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'must be the name of a header')
      .refine((name) => !ownHeaders.test(name), 'is a header that the service writes itself'),
    z.string().regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'must be one line of Latin-1 text'),
  )
  .default({})

export const webhookSchema = z
  .strictObject({
    ...commonSinkFields('webhook', 'Longest from a request to the end of its answer.'),
    url: z
      .string()
      .refine((url) => urlFault(url) === undefined, { error: ({ input }) => urlFault(String(input)) ?? '' })
      .describe('http:// or https:// URL that takes the records by POST.'),
    secret: z
      .union([secretSchema, z.array(secretSchema).min(1).max(2)])
      .optional()
      .describe(
        'Key of the signature (Standard Webhooks, HMAC-SHA256): `whsec_...` or any text. While it changes, a list of the new and the old. Write ${NAME} or ${file:PATH}.',
      ),
    headers: headersSchema.describe(
      'Further headers, such as `authorization`. Write ${NAME} or ${file:PATH} for what is secret.',
    ),
    tls: clientTlsSchema.optional().describe('Whom to trust and who we are, for an https:// URL.'),
    maxBatchRecords: z
      .number()
      .int()
      .min(1)
      .max(1_000)
      .default(1)
      .describe(
        'Most records in one request. 1: a CloudEvent in binary mode; more: a list, `application/cloudevents-batch+json`.',
      ),
    lingerMs: z.number().min(0).max(10_000).default(200).describe('Longest a record waits for a batch.'),
  })
  .superRefine(({ url, tls }, context) => {
    if (tls !== undefined && /^http:/i.test(url))
      context.addIssue({
        code: 'custom',
        path: ['tls'],
        message: 'is for an https:// URL, and url is http://',
      })
  })
export type WebhookConfig = Readonly<z.infer<typeof webhookSchema>>

/** The key that a secret stands for. */
export function secretKey(secret: string): Buffer {
  return secret.startsWith(secretPrefix)
    ? Buffer.from(secret.slice(secretPrefix.length), 'base64')
    : Buffer.from(secret, 'utf8')
}

/** Never shows the text: it may hold a token in its path. */
function urlFault(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return 'must be an http:// or https:// URL'
  const url = new URL(text)
  if (url.username !== '' || url.password !== '')
    return 'must hold no login: write it as the header authorization, in headers'
  if (url.hash !== '') return 'must not have a part behind "#": nobody is sent it'
  return undefined
}

function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]{4,}={0,2}$/.test(text) && text.replace(/=+$/, '').length % 4 !== 1
}
