import { z } from 'zod'
import { clientTlsSchema } from './client-tls.js'
import { commonSinkFields } from './sink-filter.js'

const topicPrefixSchema = z
  .string()
  .max(200)
  .regex(
    /^[^\s#+/$\p{Cc}][^\s#+/\p{Cc}]*(\/[^\s#+/\p{Cc}]+)*$/u,
    'must be parts of a topic with "/" between them, without "+", "#" and white space, and not begin with "$"',
  )

export const mqttSchema = z
  .strictObject({
    ...commonSinkFields('mqtt', 'Longest to connect, and until records are acknowledged.'),
    url: z
      .string()
      .refine((url) => urlFault(url) === undefined, { error: ({ input }) => urlFault(String(input)) ?? '' })
      .describe('Broker, as mqtt://host:1883 or mqtts://host:8883. It must speak MQTT 5.'),
    username: z.string().min(1).max(512).optional().describe('Login name.'),
    password: z.string().optional().describe('Write ${NAME} or ${file:PATH}, not the password itself.'),
    clientId: z
      .string()
      .regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 characters of ASCII without spaces')
      .optional()
      .describe(
        'Who we are to the broker; default: another one at each start. Two clients with one id end each other.',
      ),
    tls: clientTlsSchema.optional().describe('Whom to trust and who we are, for an mqtts:// URL.'),
    topicPrefix: topicPrefixSchema.default('gantry').describe('Start of every topic.'),
    homeAssistant: z
      .boolean()
      .default(false)
      .describe('Tell Home Assistant of each camera: its state, and how many of each label it sees.'),
    discoveryPrefix: topicPrefixSchema
      .default('homeassistant')
      .describe('Where Home Assistant looks for what there is.'),
    keepAliveSeconds: z
      .number()
      .int()
      .min(5)
      .max(3_600)
      .default(30)
      .describe('Longest silence until either side asks whether the other is there.'),
    maxInFlight: z
      .number()
      .int()
      .min(1)
      .max(1_000)
      .default(32)
      .describe('Most records that wait for their acknowledgement; fewer where the broker says so.'),
  })
  .superRefine(({ url, tls, username, password }, context) => {
    const fault = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    if (tls !== undefined && /^mqtt:/i.test(url)) fault('tls', 'is for an mqtts:// URL, and url is mqtt://')
    if (password !== undefined && username === undefined) fault('password', 'needs username beside it')
  })
export type MqttConfig = Readonly<z.infer<typeof mqttSchema>>

function urlFault(text: string): string | undefined {
  if (!/^mqtts?:\/\//i.test(text) || !URL.canParse(text) || new URL(text).hostname === '')
    return 'must be an mqtt://host or mqtts://host URL'
  const url = new URL(text)
  if (url.username !== '' || url.password !== '')
    return 'must hold no login: write it as username and password beside it'
  if (!/^\/?$/.test(url.pathname) || url.search !== '' || url.hash !== '')
    return 'must end behind the port: topics begin with topicPrefix'
  return undefined
}
