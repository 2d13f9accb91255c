import { describe, expect, it } from 'vitest'
import { s3Settings } from '../../src/buckets/s3-settings.js'

describe('s3Settings', () => {
  it('takes the usual variables, those of S3 alone before those of all services', () => {
    const env = {
      AWS_ENDPOINT_URL: 'http://all:1',
      AWS_ENDPOINT_URL_S3: 'http://s3:2/',
      AWS_DEFAULT_REGION: 'eu-west-1',
      AWS_ACCESS_KEY_ID: 'id',
      AWS_SECRET_ACCESS_KEY: 'secret',
      AWS_SESSION_TOKEN: 'token',
    }
    expect(s3Settings(env)).toEqual({
      endpoint: 'http://s3:2',
      region: 'eu-west-1',
      credentials: { accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: 'token' },
    })
    expect(s3Settings({ AWS_REGION: 'eu-north-1' })).toMatchObject({
      endpoint: expect.stringContaining('eu-north-1') as string,
      credentials: undefined,
    })
  })

  it.each([
    [{ AWS_ACCESS_KEY_ID: 'id' }, /AWS_SECRET_ACCESS_KEY is not set/],
    [{ AWS_ENDPOINT_URL: 'store:9000' }, /is no URL/],
  ])('refuses %j', (env, words) => {
    expect(() => s3Settings(env)).toThrow(words)
  })
})
