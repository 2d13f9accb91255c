/** One word for a POSIX shell, whatever is in the text. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** Header of the token for curl, which the shell fills in; empty where the service wants none. */
export function tokenHeader(wantsToken: boolean): string {
  return wantsToken ? ` -H "Authorization: Bearer $GANTRY_TOKEN"` : ''
}
