import { AwsClient } from 'aws4fetch'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { ServerProcess } from './child.js'
import { freePort } from './free-port.js'
import { tempDir } from './temp-dir.js'
import { tritonClients } from './triton-clients.js'
import { until } from './until.js'

/** A store that speaks S3, with one bucket; it takes signed requests of one user alone. */
export type S3Server = Readonly<{
  env: Readonly<Record<string, string>>
  port: number
  put(key: string, body: Uint8Array | string, headers?: Record<string, string>): Promise<void>
  /** As one object of several parts. */
  putInParts(key: string, parts: readonly Uint8Array[]): Promise<void>
  /** Begins an upload in parts. */
  beginUpload(key: string): Promise<string>
  /** Uploads that were begun and neither finished nor given up. */
  openUploads(): Promise<number>
  get(key: string): Promise<Buffer>
  remove(key: string): Promise<void>
  close(): Promise<void>
}>

const policy = {
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Action: 's3:*', Resource: '*' }],
}

/** Moto, installed beside Triton's clients. */
export async function startS3(bucket: string): Promise<S3Server> {
  if (tritonClients === undefined) throw new Error('moto is not installed: node scripts/setup.mjs --tests')
  const port = await freePort()
  // So many calls are nobody's: those below until the user is there.
  process.env['INITIAL_NO_AUTH_ACTION_COUNT'] = '4'
  const args = ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)]
  const server = ServerProcess.start(tritonClients.python, args, join(tempDir(), 'moto.log'))
  delete process.env['INITIAL_NO_AUTH_ACTION_COUNT']
  const close = () => server.end('SIGKILL')
  onTestFinished(close)
  const endpoint = `http://127.0.0.1:${port}`
  await until('moto', async () => (await fetch(`${endpoint}/moto-api/`)).ok, 60_000)
  const anybody = { accessKeyId: 'anybody', secretAccessKey: 'anything', region: 'us-east-1' }
  const made = async (service: string, path: string, init: RequestInit) => {
    const answer = await new AwsClient({ ...anybody, service }).fetch(`${endpoint}/${path}`, init)
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`)
    return text
  }
  const iam = (fields: Record<string, string>) =>
    made('iam', '', {
      method: 'POST',
      body: new URLSearchParams({ ...fields, Version: '2010-05-08' }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
  await made('s3', bucket, { method: 'PUT' })
  await iam({ Action: 'CreateUser', UserName: 'batch' })
  await iam({
    Action: 'PutUserPolicy',
    UserName: 'batch',
    PolicyName: 'all',
    PolicyDocument: JSON.stringify(policy),
  })
  const keys = await iam({ Action: 'CreateAccessKey', UserName: 'batch' })
  const of = (name: string) => new RegExp(`<${name}>(.*)</${name}>`).exec(keys)?.[1] ?? ''
  const [accessKeyId, secretAccessKey] = [of('AccessKeyId'), of('SecretAccessKey')]
  const client = new AwsClient({ accessKeyId, secretAccessKey, region: 'us-east-1', service: 's3' })
  const pathOf = (name: string) =>
    name
      .split('/')
      .map((part) =>
        encodeURIComponent(part).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`),
      )
      .join('/')
  const asked = async (path: string, init: RequestInit = {}) => {
    const answer = await client.fetch(`${endpoint}/${bucket}${path}`, init)
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return answer
  }
  const beginUpload = async (name: string) => {
    const begun = await (await asked(`/${pathOf(name)}?uploads=`, { method: 'POST' })).text()
    return /<UploadId>(.*)<\/UploadId>/.exec(begun)?.[1] ?? ''
  }
  return {
    env: {
      AWS_ENDPOINT_URL: endpoint,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
    },
    port,
    async put(name, body, headers = {}) {
      await asked(`/${pathOf(name)}`, { method: 'PUT', body: Buffer.from(body), headers })
    },
    async putInParts(name, parts) {
      const path = `/${pathOf(name)}`
      const id = await beginUpload(name)
      const tags: string[] = []
      for (const [index, part] of parts.entries()) {
        const answer = await asked(`${path}?partNumber=${index + 1}&uploadId=${id}`, {
          method: 'PUT',
          body: Buffer.from(part),
        })
        tags.push(answer.headers.get('etag') ?? '')
      }
      const list = tags.map(
        (tag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${tag}</ETag></Part>`,
      )
      const body = `<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`
      await asked(`${path}?uploadId=${id}`, { method: 'POST', body })
    },
    beginUpload,
    async openUploads() {
      const text = await (await asked('?uploads=')).text()
      return [...text.matchAll(/<UploadId>/g)].length
    },
    async get(name) {
      return Buffer.from(await (await asked(`/${pathOf(name)}`)).arrayBuffer())
    },
    async remove(name) {
      await asked(`/${pathOf(name)}`, { method: 'DELETE' })
    },
    close,
  }
}
