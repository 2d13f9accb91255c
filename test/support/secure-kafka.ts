import { createPrivateKey, createPublicKey, createSign } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { KafkaBroker } from './kafka.js'
import { type IssuedFiles, TestAuthority } from './test-authority.js'

export const brokerUser = { username: 'gantry' }

/** Listeners of {@link secureBroker}, each with another certificate or login. */
const listeners = {
  TRUSTED: 'SSL',
  EXPIRED: 'SSL',
  RENAMED: 'SSL',
  MUTUAL: 'SSL',
  LOGIN: 'SASL_SSL',
  TOKENS: 'SASL_SSL',
} as const

const jaas = (module: string, rest = '') => `org.apache.kafka.common.security.${module} required${rest};`

/** A real broker that speaks TLS and asks for logins, with the authority of its certificates and an endpoint that gives tokens. */
export async function secureBroker() {
  const authority = new TestAuthority()
  const certificates = {
    TRUSTED: authority.issue('broker'),
    EXPIRED: authority.issue('expired', { expired: true }),
    RENAMED: authority.issue('renamed', { names: 'DNS:kafka.plant.example' }),
  }
  const stores = Object.fromEntries(
    Object.entries(certificates).map(([name, files]) => [name, keyStore(authority, name, files)]),
  )
  const tokens = await tokenEndpoint(authority)
  const ofStore = (listener: string, store = 'TRUSTED') => ({
    [`listener.name.${listener.toLowerCase()}.ssl.keystore.type`]: 'PEM',
    [`listener.name.${listener.toLowerCase()}.ssl.keystore.location`]: stores[store] ?? '',
    [`listener.name.${listener.toLowerCase()}.ssl.truststore.type`]: 'PEM',
    [`listener.name.${listener.toLowerCase()}.ssl.truststore.location`]: authority.ca,
  })
  const { username } = brokerUser
  const broker = await KafkaBroker.start({
    listeners,
    scramUsers: { [username]: 'scram-secret' },
    java: [`-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=${tokens.keySet}`],
    properties: {
      ...ofStore('TRUSTED'),
      ...ofStore('EXPIRED', 'EXPIRED'),
      ...ofStore('RENAMED', 'RENAMED'),
      ...ofStore('MUTUAL'),
      ...ofStore('LOGIN'),
      ...ofStore('TOKENS'),
      'listener.name.mutual.ssl.client.auth': 'required',
      'listener.name.login.sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
      'listener.name.login.plain.sasl.jaas.config': jaas(
        'plain.PlainLoginModule',
        ` user_${username}="plain-secret"`,
      ),
      'listener.name.login.scram-sha-256.sasl.jaas.config': jaas('scram.ScramLoginModule'),
      'listener.name.login.scram-sha-512.sasl.jaas.config': jaas('scram.ScramLoginModule'),
      'listener.name.tokens.sasl.enabled.mechanisms': 'OAUTHBEARER',
      'listener.name.tokens.oauthbearer.sasl.jaas.config': jaas('oauthbearer.OAuthBearerLoginModule'),
      'listener.name.tokens.oauthbearer.sasl.server.callback.handler.class':
        'org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler',
      'sasl.oauthbearer.jwks.endpoint.url': tokens.keySet,
      'sasl.oauthbearer.expected.audience': 'kafka',
    },
  })
  return {
    authority,
    broker,
    tokens,
    at: (listener: keyof typeof listeners) => `127.0.0.1:${broker.ports[listener] ?? 0}`,
    stop: async () => {
      await broker.stop()
      tokens.server.close()
      tokens.server.closeAllConnections()
      authority.remove()
    },
  }
}

/** Kafka reads key and certificates from one PEM file. */
function keyStore(authority: TestAuthority, name: string, { cert, key }: IssuedFiles): string {
  const path = join(authority.folder, `${name}.store.pem`)
  writeFileSync(path, authority.text(key) + authority.text(cert) + authority.text(authority.ca))
  return path
}

/** An endpoint of OAuth 2.0 that signs what it gives, and the key that brokers check it by. */
async function tokenEndpoint(authority: TestAuthority) {
  const keyFile = join(authority.folder, 'tokens.key')
  authority.openssl('genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', keyFile)
  const key = createPrivateKey(authority.text(keyFile))
  const keys = [{ ...createPublicKey(key).export({ format: 'jwk' }), kid: 'one', use: 'sig', alg: 'RS256' }]
  const keySetFile = join(authority.folder, 'keys.json')
  writeFileSync(keySetFile, JSON.stringify({ keys }))
  const coded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = (lifeSeconds: number, claims = {}) => {
    const now = Math.floor(Date.now() / 1000)
    const payload = {
      sub: 'gantry',
      aud: 'kafka',
      iat: now,
      exp: now + lifeSeconds,
      scope: 'produce',
      ...claims,
    }
    const text = `${coded({ alg: 'RS256', kid: 'one' })}.${coded(payload)}`
    return `${text}.${createSign('RSA-SHA256').update(text).sign(key, 'base64url')}`
  }
  const asked: { authorization: string; form: string }[] = []
  const files = authority.issue('token endpoint')
  const tls = { key: authority.text(files.key), cert: authority.text(files.cert) }
  const server: Server = createServer(tls, (request, response) => {
    let form = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (form += chunk))
    request.on('end', () => {
      const { authorization = '' } = request.headers
      asked.push({ authorization, form })
      const isKnown = Buffer.from(authorization.slice(6), 'base64').toString() === 'gantry:let%3Ame+in'
      response.setHeader('content-type', 'application/json')
      if (isKnown)
        response.end(JSON.stringify({ access_token: signed(3_600), token_type: 'bearer', expires_in: 3_600 }))
      else
        response
          .writeHead(401)
          .end(JSON.stringify({ error: 'invalid_client', error_description: 'who are you' }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { server, url: `https://127.0.0.1:${port}/token`, keySet: `file://${keySetFile}`, asked, signed }
}
