const key = 'gantry.token'

/** The token for this tab; gone when the tab is closed. */
export function savedToken(): string | undefined {
  return sessionStorage.getItem(key) ?? undefined
}

export function saveToken(token: string): void {
  sessionStorage.setItem(key, token)
}
