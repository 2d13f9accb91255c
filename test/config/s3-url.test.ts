import { describe, expect, it } from 'vitest'
import { parseS3Url } from '../../src/config/s3-url.js'
import { modelsSchema } from '../../src/config/models.js'

describe('parseS3Url', () => {
  it.each([
    ['s3://plant', undefined, 'plant', ''],
    ['s3://plant/models/a b', undefined, 'plant', 'models/a b'],
    ['s3://store:9000/plant/models', 'http://store:9000', 'plant', 'models'],
    ['s3://https://store:9000/plant/models', 'https://store:9000', 'plant', 'models'],
    ['s3://http://10.0.0.1:9000/plant', 'http://10.0.0.1:9000', 'plant', ''],
    ['s3://https://store.example.com/plant/', 'https://store.example.com', 'plant', ''],
    ['s3://plant/a@b', undefined, 'plant', 'a@b'],
  ])('takes %s apart', (url, endpoint, bucket, key) => {
    expect(parseS3Url(url)).toEqual({ endpoint, bucket, key })
  })

  it.each(['s3://', 's3:///models', 's3://p', 's3://pl ant/x', 's3://https://store:99999/plant'])(
    'refuses %s',
    (url) => {
      expect(parseS3Url(url)).toMatchObject({ hint: expect.stringContaining('s3://BUCKET/PREFIX') as string })
    },
  )

  it.each(['s3://id:secret@plant/models', 's3://https://id:secret@store:9000/plant'])(
    'S46: refuses a login in %s without telling it',
    (url) => {
      const fault = parseS3Url(url)
      expect(fault).toMatchObject({ hint: expect.stringContaining('AWS_SECRET_ACCESS_KEY') as string })
      expect(JSON.stringify(fault)).not.toContain('secret@')
    },
  )
})

it.each([
  ['gs://bucket/models', /gs:\/\/ is not read/],
  ['s3://', /names no bucket/],
])('models.repository: %s is refused with what is read instead', (repository, message) => {
  const { error } = modelsSchema.safeParse({ repository: ['../models', repository] })
  expect(error?.message).toMatch(message)
})
