import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { printConfig } from '../../src/config/print.js'
import { pipelineSchema } from '../../src/config/pipeline.js'
import { redactSettings, redactText } from '../../src/config/redact.js'

describe('redactText', () => {
  it.each([
    ['rtsp://admin:S3cret@cam/1', 'rtsp://***@cam/1'],
    ['rtsp://admin:S3%40cret@cam/1', 'rtsp://***@cam/1'],
    ['rtsp://admin:p@ss/w:rd@cam/1', 'rtsp://***@cam/1'],
    ["Input #0, rtsp, from 'rtsp://a:b@h/x':", "Input #0, rtsp, from 'rtsp://***@h/x':"],
    ['http://cam/video?user=admin&pwd=x&channel=2', 'http://cam/video?user=***&pwd=***&channel=2'],
    ['rtsp://cam:554/user=admin_password=abc_channel=1', 'rtsp://cam:554/user=***'],
    ['https://h/live.m3u8?token=abc#t', 'https://h/live.m3u8?token=***'],
    ['https://h/live.m3u8?fps=5#s3cret', 'https://h/live.m3u8?fps=5#***'],
    ['https://h/live#access_token=s3cret&x=1', 'https://h/live#***&x=1'],
    ['file:///clips/a#1.mp4', 'file:///clips/a#1.mp4'],
    ['rtsp://cam/inside=4&side=left', 'rtsp://cam/inside=4&side=left'],
    ['two: redis://:a@h:1 and rtsp://u:p@k/2', 'two: redis://***@h:1 and rtsp://***@k/2'],
    ['rtsp://cam:554/stream1?fps=5', 'rtsp://cam:554/stream1?fps=5'],
    ['no URL at all: a@b', 'no URL at all: a@b'],
  ])('%s', (text, redacted) => {
    expect(redactText(text)).toBe(redacted)
  })

  it.each([
    ...[
      'user',
      'usr',
      'loginuse',
      'pass',
      'passwd',
      'password1',
      'pwd',
      'psw',
      'loginpas_pwd',
      'api_key',
      'apikey',
      'key',
    ],
    ...[
      'auth',
      'authorization',
      'credential',
      'credentials',
      'cred',
      'secret',
      'token',
      'access_token',
      'sig',
      'signature',
    ],
    ...['sid', 'SID', 'php_sid', 'session', 'sessionId', 'jsessionid', 'jwt', 'otp', 'pin', 'u', 'p', 'pw'],
  ])('S19: masks the parameter %s, wherever it stands', (name) => {
    for (const before of ['http://cam/v?', 'http://cam/v?fps=5&', 'rtsp://cam/v#'])
      expect(redactText(`opening ${before}${name}=s3cr#et&b=1`)).not.toMatch(/s3cr|et&/)
  })

  it('leaves no part of any password', () => {
    const password = fc.stringMatching(/^[!-~]{8,20}$/).filter((text) => !/["'<>]/.test(text))
    fc.assert(
      fc.property(password, (secret) => {
        expect(redactText(`cannot open rtsp://admin:${secret}@camera/1 now`)).not.toContain(secret)
      }),
    )
  })
})

describe('settings that are secret by name', () => {
  it.each([
    'token',
    'password',
    'passphrase',
    'secret',
    'clientSecret',
    'credential',
    'psw',
    'sid',
    'apiKey',
    'accessKey',
  ])('S19: masks %s', (name) => expect(redactSettings({ [name]: 'canary' })).toEqual({ [name]: '***' }))

  it.each(['tokenFile', 'keyframes', 'passive', 'brokers', 'username', 'outside'])('shows %s', (name) =>
    expect(redactSettings({ [name]: 'seen' })).toEqual({ [name]: 'seen' }),
  )
})

describe('printConfig', () => {
  it('shows every setting and no secret', () => {
    const config = pipelineSchema.parse({
      apiVersion: 'gantry/v1',
      server: { token: 'canary-canary-canary' },
      cameras: [{ id: 'a', url: 'rtsp://admin:canary@cam/1' }],
      cache: { redis: 'redis://:canary@h:6379' },
      sinks: {
        kafka: { brokers: ['h:9092'], sasl: { mechanism: 'plain', username: 'u', password: 'canary' } },
      },
    })
    const text = printConfig(config)
    expect(text).not.toContain('canary')
    expect(text).toContain('token: "***"')
    expect(text).toContain('url: rtsp://***@cam/1')
    expect(text).toContain('maxQueueDelayMs: 5')
  })
})
