/** What went wrong between two ends of a TLS connection, in words that name the setting. */
export type ConnectionAdvice = Readonly<{ reason: string; fix: string }>

const ofIssuer =
  /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED|CERT_SIGNATURE_FAILURE|CERT_REJECTED|INVALID_CA|INVALID_PURPOSE)$/

/**
 * Why a TLS connection that this end began did not come about; undefined where TLS is not why.
 *
 * @param error - of the socket, as Node gives it
 * @param setting - section of PEM files: `sinks.kafka.ssl`
 * @param off - how the settings say that there is no TLS: `sinks.kafka.ssl: false`
 */
export function tlsFailure(error: unknown, setting: string, off: string): ConnectionAdvice | undefined {
  if (!(error instanceof Error)) return undefined
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (ofIssuer.test(code))
    return {
      reason: `the certificate of the server is not signed by a CA that is trusted here (${code})`,
      fix: `set ${setting}.ca to the PEM file of the CA that signed it`,
    }
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return {
        reason: 'a certificate of the server, or of a CA behind it, has expired',
        fix: `renew it on the server, and ${setting}.ca if that is the one; look at the clock of this machine too`,
      }
    case 'CERT_NOT_YET_VALID':
      return {
        reason: 'the certificate of the server is not valid yet',
        fix: 'look at the clocks of both machines',
      }
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return {
        reason: `the certificate of the server bears another name: ${namesOf(error)}`,
        fix: `connect by a name that is in it, or set ${setting}.servername to one`,
      }
    case 'ECONNRESET':
      return error.message.includes('before secure TLS connection')
        ? {
            reason: 'the server ended the connection before TLS was agreed on',
            fix: `look whether that port speaks TLS: without it, ${off}`,
          }
        : undefined
    default:
      return sslFailure(code, error.message, setting, off)
  }
}

function sslFailure(
  code: string,
  message: string,
  setting: string,
  off: string,
): ConnectionAdvice | undefined {
  if (!/^(ERR_SSL_|EPROTO$)/.test(code)) return undefined
  const text = `${code} ${message}`
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|wrong version number|packet length too long/i.test(text))
    return { reason: 'what answers there does not speak TLS', fix: `name the port of TLS, or set ${off}` }
  if (/ALERT_CERTIFICATE_REQUIRED|alert certificate required/i.test(text))
    return {
      reason: 'the server asks for a certificate of ours',
      fix: `set ${setting}.cert and ${setting}.key`,
    }
  if (/ALERT_CERTIFICATE_EXPIRED|alert certificate expired/i.test(text))
    return { reason: 'the server says that our certificate has expired', fix: `renew ${setting}.cert` }
  if (
    /ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_UNKNOWN|CERTIFICATE_REVOKED|UNSUPPORTED_CERTIFICATE|ACCESS_DENIED)|alert (unknown ca|bad certificate|certificate unknown|access denied)/i.test(
      text,
    )
  )
    return {
      reason: `the server does not take our certificate, or wants one (${code})`,
      fix: `set ${setting}.cert and ${setting}.key to a pair that the CA of the server signed`,
    }
  if (
    /HANDSHAKE_FAILURE|PROTOCOL_VERSION|NO_SHARED_CIPHER|INSUFFICIENT_SECURITY|alert protocol version|handshake failure/i.test(
      text,
    )
  )
    return {
      reason: `both sides agree on no version or cipher of TLS, or the server wants a certificate of ours (${code})`,
      fix: `let the server speak TLS 1.2 or 1.3, and set ${setting}.cert and ${setting}.key if it asks for them`,
    }
  return { reason: `TLS fails: ${message}`, fix: `look at ${setting}, and at the log of the server` }
}

/** The names that the certificate has; for an address Node tells addresses alone. */
function namesOf(error: Error): string {
  const cert = 'cert' in error ? (error.cert as Readonly<{ subjectaltname?: string }> | undefined) : undefined
  const host = 'host' in error && typeof error.host === 'string' ? error.host : ''
  return `it is for ${cert?.subjectaltname ?? 'no name at all'}, not for ${host}`.slice(0, 500)
}
