import { ObjectStoreError } from './s3-errors.js'

/** Where a store is and who asks. */
export type S3Settings = Readonly<{
  /** Without a slash at its end. */
  endpoint: string
  region: string
  /** Absent: requests are not signed, as public buckets take them. */
  credentials: Readonly<{ accessKeyId: string; secretAccessKey: string; sessionToken?: string }> | undefined
}>

/**
 * By the usual variables: `AWS_ENDPOINT_URL_S3` before `AWS_ENDPOINT_URL`, else Amazon's for the region; `AWS_REGION` before
 * `AWS_DEFAULT_REGION`; `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
 *
 * @param named - a store that goes before that of the environment.
 * @throws ObjectStoreError where one half of the credentials is missing, or the endpoint is no URL
 */
export function s3Settings(env: Readonly<Record<string, string | undefined>>, named?: string): S3Settings {
  const set = (name: string) => (env[name] === '' ? undefined : env[name])
  const region = set('AWS_REGION') ?? set('AWS_DEFAULT_REGION') ?? 'us-east-1'
  const endpoint =
    named ?? set('AWS_ENDPOINT_URL_S3') ?? set('AWS_ENDPOINT_URL') ?? `https://s3.${region}.amazonaws.com`
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol))
    throw new ObjectStoreError(
      `AWS_ENDPOINT_URL is "${endpoint}", which is no URL`,
      'Write http://HOST:PORT or https://HOST.',
    )
  const [accessKeyId, secretAccessKey] = [set('AWS_ACCESS_KEY_ID'), set('AWS_SECRET_ACCESS_KEY')]
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined))
    throw new ObjectStoreError(
      `${accessKeyId === undefined ? 'AWS_ACCESS_KEY_ID' : 'AWS_SECRET_ACCESS_KEY'} is not set, and the other half of the credentials is`,
      'Set both, or neither for a public bucket.',
    )
  const sessionToken = set('AWS_SESSION_TOKEN')
  const credentials =
    accessKeyId === undefined || secretAccessKey === undefined
      ? undefined
      : { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) }
  return { endpoint: endpoint.replace(/\/+$/, ''), region, credentials }
}
