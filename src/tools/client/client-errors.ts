import { redactUrl } from '../../config/redact.js'
import { GantryError } from '../../errors.js'

/** No server answers there, or one that answered does not any more. */
export class ServerUnreachableError extends GantryError {
  readonly code = 'GANTRY_SERVER_UNREACHABLE'
  readonly hint: string
  override readonly retryable = true
  constructor(url: string, detail: string, cause?: unknown) {
    super(`no server answers at ${url}: ${detail}`, { cause })
    this.hint = isOfCertificate(cause)
      ? 'Name a PEM file of the certificates that vouch for it: NODE_EXTRA_CA_CERTS=FILE, or --ca FILE of gantry perf.'
      : 'Start the server, or name its address with --url; a model server of Gantry wants modelServer.enabled.'
    this.name = 'ServerUnreachableError'
  }
}

/** The certificate of the server is what is wrong; codes are those of OpenSSL, and of Node for the name in it. */
export function isOfCertificate(cause: unknown): boolean {
  const { code } = (cause ?? {}) as { code?: unknown }
  return typeof code === 'string' && /CERT|ISSUER|LEAF_SIGNATURE|INVALID_CA/.test(code)
}

/** A server was reached and then closed the connection, or was silent, with a request under way. */
export class ServerLostError extends GantryError {
  readonly code = 'GANTRY_SERVER_UNREACHABLE'
  readonly hint =
    'Look at the log of the server: it ended, was restarted, or a proxy between cut the connection.'
  override readonly retryable = true
  constructor(url: string, detail: string, cause?: unknown) {
    super(`the server at ${url} was lost: ${detail}`, { cause })
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
  readonly hint = '`gantry models list --url URL` shows what a server has.'
  constructor(url: string, model: string, detail: string) {
    super(`the server at ${url} has no model "${model}": ${detail}`)
    this.name = 'RemoteModelMissingError'
  }
}

/** The server does not do what it was asked, and says why. */
export class ServerRefusalError extends GantryError {
  readonly code = 'GANTRY_MODEL_SERVER'
  readonly hint = 'The message is that of the server; its log may say more.'
  constructor(
    url: string,
    message: string,
    /** HTTP status, or gRPC status as the HTTP status it stands for. */
    readonly status: number,
    cause?: unknown,
  ) {
    super(`the server at ${url} answers: ${message}`, { cause })
    this.name = 'ServerRefusalError'
  }
}

/** The answer is not what the protocol says. */
export class ServerAnswerError extends GantryError {
  readonly code = 'GANTRY_MODEL_SERVER'
  readonly hint =
    'Is it a server of the KServe v2 protocol, and the right port: 8000 for HTTP, 8001 for gRPC?'
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
