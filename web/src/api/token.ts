const key = 'gantry.token'

/** The token for this tab; gone when the tab is closed. */
export function savedToken(): string | undefined {
  return sessionStorage.getItem(key) ?? undefined
}

export function saveToken(token: string): void {
  sessionStorage.setItem(key, token)
}

/** A browser cannot set headers on a WebSocket: the token goes along as a sub-protocol, which the server never repeats. */
export function tokenProtocol(token: string): string {
  const bytes = new TextEncoder().encode(token)
  const base64 = btoa(String.fromCharCode(...bytes))
  return `gantry.token.${base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`
}
