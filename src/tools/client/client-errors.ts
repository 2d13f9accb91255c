import { redactUrl } from '../../config/redact.js'
import { GantryError } from '../../errors.js'
import { Http2SyntaxError } from './http2-syntax-error.js'

const otherPort =
  'What answers there speaks no gRPC: name the port that does, 8001 of Gantry, or write http://.'
const rightPort =
  'Is it a server of the KServe v2 protocol, and the right port: 8000 for HTTP, 8001 for gRPC?'

/** No server answers there, or one that answered does not any more. */
export class ServerUnreachableError extends GantryError {
  readonly code = 'GANTRY_SERVER_UNREACHABLE'
  readonly hint: string
  override readonly retryable = true
  constructor(url: string, detail: string, cause?: unknown) {
    super(`no server answers at ${url}: ${detail}`, { cause })
    this.hint =
      tlsHint(cause) ??
      (cause instanceof Http2SyntaxError ? otherPort : undefined) ??
      'Start the server, or name its address with --url; a model server of Gantry wants modelServer.enabled.'
    this.name = 'ServerUnreachableError'
  }
}

/**
 * What to do where TLS is why a server cannot be asked; undefined where it is not.
 *
 * @param cause - error of the socket; its code is that of OpenSSL, and of Node for the name in a certificate
 */
export function tlsHint(cause: unknown): string | undefined {
  const { code, message } = (cause ?? {}) as { code?: unknown; message?: unknown }
  if (typeof code !== 'string') return undefined
  if (code === 'CERT_HAS_EXPIRED')
    return 'Renew the certificate of the server, or look at the clock of this machine.'
  if (code === 'CERT_NOT_YET_VALID') return 'Look at the clocks of both machines.'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'Write a name into --url that the certificate has.'
  const text = `${code} ${String(message)}`
  if (/wrong.version.number|packet.length.too.long/i.test(text))
    return 'What answers there speaks no TLS: write http:// or grpc://, or name the port that does.'
  if (/alert|HANDSHAKE_FAILURE/i.test(text))
    return 'The server wants another certificate of this end, or one at all: --cert FILE --key FILE, signed by its clientCa.'
  return /CERT|ISSUER|LEAF_SIGNATURE|INVALID_CA/.test(code)
    ? 'Name a PEM file of the certificates that vouch for it: --ca FILE.'
    : undefined
}

/** A server was reached and then closed the connection, or was silent, with a request under way. */
export class ServerLostError extends GantryError {
  readonly code = 'GANTRY_SERVER_UNREACHABLE'
  readonly hint: string
  override readonly retryable = true
  constructor(url: string, detail: string, cause?: unknown) {
    super(`the server at ${url} was lost: ${detail}`, { cause })
    // A certificate that is missing is told by TLS 1.3 once the connection stands.
    this.hint =
      tlsHint(cause) ??
      'Look at the log of the server: it ended, was restarted, or a proxy between cut the connection.'
    this.name = 'ServerLostError'
  }
}

/** The server wants a token, or another one. */
export class ServerTokenError extends GantryError {
  readonly code = 'GANTRY_UNAUTHORIZED'
  readonly hint = 'Give the token of the server with --token or GANTRY_TOKEN.'
  constructor(url: string) {
    super(`the server at ${url} asks for its token`)
    this.name = 'ServerTokenError'
  }
}

/** The server has no such model, or no such version of it. */
export class RemoteModelMissingError extends GantryError {
  readonly code = 'GANTRY_MODEL_NOT_FOUND'
  readonly hint: string
  constructor(url: string, model: string, detail: string) {
    super(`the server at ${url} has no model "${model}": ${detail}`)
    this.hint = `\`gantry models list --url ${/^https?:/.test(url) ? url : 'http://HOST:PORT'}\` shows what it has.`
    this.name = 'RemoteModelMissingError'
  }
}

/** The server does not do what it was asked, and says why. */
export class ServerRefusalError extends GantryError {
  readonly code = 'GANTRY_MODEL_SERVER'
  readonly hint: string
  constructor(
    url: string,
    message: string,
    /** HTTP status, or gRPC status as the HTTP status it stands for. */
    readonly status: number,
    cause?: unknown,
  ) {
    super(`the server at ${url} answers: ${message}`, { cause })
    // Of a model that is not there the client tells by another error: what has not even the path is another service.
    this.hint = status === 404 ? rightPort : 'The message is that of the server; its log may say more.'
    this.name = 'ServerRefusalError'
  }
}

/** The answer is not what the protocol says. */
export class ServerAnswerError extends GantryError {
  readonly code = 'GANTRY_MODEL_SERVER'
  readonly hint = rightPort
  constructor(url: string, detail: string, cause?: unknown) {
    super(`the answer of ${url} is not understood: ${detail}`, { cause })
    this.name = 'ServerAnswerError'
  }
}

/** An address that is none. */
export class ServerUrlError extends GantryError {
  readonly code = 'GANTRY_USAGE'
  readonly hint =
    'Write http://HOST:PORT, https://HOST:PORT, grpc://HOST:PORT, grpcs://HOST:PORT or HOST:PORT.'
  constructor(url: string, detail: string) {
    super(`--url ${redactUrl(url)}: ${detail}`)
    this.name = 'ServerUrlError'
  }
}
