import { redactUrl } from './redact.js'

/** What an `s3://` URL names. */
export type S3Place = Readonly<{
  /** `http://HOST:PORT` or `https://HOST:PORT`, where the URL names the store; else it is the one of the environment. */
  endpoint: string | undefined
  bucket: string
  /** A key or the beginning of keys; empty for the whole bucket. */
  key: string
}>

/** What is wrong with a URL, and how it is written. */
export type S3UrlFault = Readonly<{ message: string; hint: string }>

export function isS3Url(text: string): boolean {
  return text.startsWith('s3://')
}

const form = /^s3:\/\/(?:(https?):\/\/([^/]+)\/|([^/:]+:\d+)\/)?([^/]+)(?:\/(.*))?$/s
/** What stores take as the name of a bucket, underscores of old ones among it. */
const bucketName = /^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/

/**
 * Takes a URL apart: `s3://BUCKET/KEY`, or with the store in it, as Triton writes it: `s3://HOST:PORT/BUCKET/KEY` by HTTP and
 * `s3://https://HOST:PORT/BUCKET/KEY`.
 */
export function parseS3Url(url: string): S3Place | S3UrlFault {
  const [, scheme = 'http', named, bare, bucket = '', key = ''] = form.exec(url) ?? []
  const host = named ?? bare
  if (host?.includes('@') === true || bucket.includes('@'))
    return {
      message: `"${redactUrl(url)}" holds a login`,
      hint: 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment',
    }
  const endpoint = host === undefined ? undefined : `${scheme}://${host}`
  if (endpoint !== undefined && !URL.canParse(endpoint))
    return { message: `"${url}" names no store: ${endpoint} is no URL`, hint: forms }
  if (bucketName.test(bucket)) return { endpoint, bucket, key }
  return {
    message: bucket === '' ? `"${url}" names no bucket` : `"${bucket}" is no name of a bucket`,
    hint: forms,
  }
}

const forms = 'write s3://BUCKET/PREFIX or s3://https://HOST:PORT/BUCKET/PREFIX'

export function isS3UrlFault(parsed: S3Place | S3UrlFault): parsed is S3UrlFault {
  return 'message' in parsed
}
