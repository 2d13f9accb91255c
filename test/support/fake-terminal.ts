import type { Terminal } from '../../src/cli/terminal.js'

export type FakeTerminal = Terminal & Readonly<{ stdout(): string; stderr(): string }>

/** A terminal that remembers what was written to it. */
export function fakeTerminal(env: Terminal['env'] = {}, color = false): FakeTerminal {
  const written = { out: '', err: '' }
  return {
    out: (text) => void (written.out += `${text}\n`),
    err: (text) => void (written.err += `${text}\n`),
    stdout: () => written.out,
    stderr: () => written.err,
    env,
    columns: undefined,
    color: { out: color, err: color },
  }
}
