import { z } from 'zod'

/** Settings of a login that each mechanism takes. */
const passwordKeys = ['username', 'password'] as const
const tokenKeys = ['tokenEndpoint', 'clientId', 'clientSecret', 'scope', 'token', 'tokenFile'] as const

/** How to log in to the brokers. */
export const kafkaLoginSchema = z
  .strictObject({
    mechanism: z.enum(['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer']).describe('How to log in.'),
    username: z.string().optional().describe('Login name; not with `oauthbearer`.'),
    password: z.string().optional().describe('Write ${NAME} or ${file:PATH}, not the password itself.'),
    tokenEndpoint: z
      .string()
      .refine(
        (url) => /^https?:\/\//i.test(url) && URL.canParse(url),
        'must be the https:// URL where tokens are given',
      )
      .optional()
      .describe(
        '`oauthbearer`: URL that gives tokens for `clientId` and `clientSecret` (RFC 6749, client credentials). Kafka: `sasl.oauthbearer.token.endpoint.url`.',
      ),
    clientId: z.string().min(1).optional().describe('`oauthbearer`: who asks for the token.'),
    clientSecret: z
      .string()
      .min(1)
      .optional()
      .describe('`oauthbearer`: its secret. Write ${NAME} or ${file:PATH}, not the secret itself.'),
    scope: z.string().min(1).optional().describe('`oauthbearer`: what the token is to be good for.'),
    token: z
      .string()
      .min(1)
      .optional()
      .describe('`oauthbearer`: the token itself. With ${file:PATH} the file is read at each login.'),
    tokenFile: z
      .string()
      .min(1)
      .optional()
      .describe('`oauthbearer`: file of a token that somebody renews; it is read at each login.'),
  })
  .superRefine((login, context) => {
    for (const { setting, message } of loginFaults(login))
      context.addIssue({ code: 'custom', path: [setting], message })
  })
export type KafkaLogin = Readonly<z.infer<typeof kafkaLoginSchema>>

function* loginFaults(
  login: z.infer<typeof kafkaLoginSchema>,
): Generator<{ setting: string; message: string }> {
  const { mechanism } = login
  const isToken = mechanism === 'oauthbearer'
  for (const setting of isToken ? passwordKeys : tokenKeys)
    if (login[setting] !== undefined) yield { setting, message: `is not for mechanism ${mechanism}` }
  if (!isToken) {
    for (const setting of passwordKeys)
      if (login[setting] === undefined) yield { setting, message: `missing: mechanism ${mechanism} needs it` }
    return
  }
  const ways = (['tokenEndpoint', 'token', 'tokenFile'] as const).filter((way) => login[way] !== undefined)
  const [first, second] = ways
  if (first === undefined)
    yield {
      setting: 'tokenEndpoint',
      message: 'missing: mechanism oauthbearer needs it with clientId and clientSecret, or tokenFile',
    }
  if (second !== undefined) yield { setting: second, message: `stands beside ${first}: keep one of them` }
  for (const setting of ['clientId', 'clientSecret'] as const) {
    if (login.tokenEndpoint !== undefined && login[setting] === undefined)
      yield { setting, message: 'missing: tokenEndpoint needs it' }
    if (login.tokenEndpoint === undefined && first !== undefined && login[setting] !== undefined)
      yield { setting, message: `is for tokenEndpoint, and ${first} stands here` }
  }
}
