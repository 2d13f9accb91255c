import { styleText } from 'node:util'

/** Where a command reads and writes; passed in, so that tests see every byte. */
export type Terminal = Readonly<{
  /** Data: what a pipe should get. */
  out(text: string): void
  /** Everything else. */
  err(text: string): void
  /** Writes over the last line of stderr, which has no end yet; empty text takes it away. Undefined where stderr is no terminal. */
  rewrite?: (text: string) => void
  env: Readonly<Record<string, string | undefined>>
  /** Columns of the terminal, where stdout is one. */
  columns: number | undefined
  /** Colours are welcome on stdout, or on stderr. */
  color: Readonly<{ out: boolean; err: boolean }>
}>

type Stream = Readonly<{ isTTY?: boolean }>

/** @see https://no-color.org: any value but the empty one turns colour off. */
export function wantsColor(env: Terminal['env'], stream: Stream): boolean {
  if (env.NO_COLOR) return false
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== '0'
  return stream.isTTY === true && env.TERM !== 'dumb'
}

export function processTerminal(): Terminal {
  const { stdout, stderr, env } = process
  return {
    out: (text) => void stdout.write(`${text}\n`),
    err: (text) => void stderr.write(`${text}\n`),
    ...(stderr.isTTY && env.TERM !== 'dumb' && { rewrite: (text: string) => rewriteLine(stderr, text) }),
    env,
    columns: stdout.isTTY ? stdout.columns : undefined,
    color: { out: wantsColor(env, stdout), err: wantsColor(env, stderr) },
  }
}

function rewriteLine(stream: NodeJS.WriteStream & { fd: 2 }, text: string): void {
  const shown = text.length >= stream.columns ? `${text.slice(0, stream.columns - 4)}...` : text
  stream.write(`\r\x1b[K${shown}`)
}

export type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan'

export function styled(text: string, style: Style, color: boolean): string {
  return color ? styleText(style, text, { validateStream: false }) : text
}
