import { styled, type Style, type Terminal } from './terminal.js'
import { table } from './table.js'

/** Something that was looked at. `skipped` says why it was not. */
export type Finding = Readonly<{
  subject: string
  state: 'ok' | 'warning' | 'failed' | 'skipped'
  detail: string
  /** What to do about it. */
  fix?: string
}>

const styles: Readonly<Record<Finding['state'], Style>> = {
  ok: 'green',
  warning: 'yellow',
  failed: 'red',
  skipped: 'dim',
}

/** Findings as a table with the fixes below their lines. */
export function findingsTable(findings: readonly Finding[], terminal: Terminal): string {
  const color = terminal.color.out
  const rows = findings.map(({ subject, state, detail }) => [
    subject,
    styled(state, styles[state], color),
    detail,
  ])
  const [head = '', ...lines] = table(
    ['WHAT', 'STATE', 'DETAIL'].map((word) => styled(word, 'bold', color)),
    rows,
  ).split('\n')
  const withFixes = lines.flatMap((line, index) => {
    const fix = findings[index]?.fix
    return fix === undefined ? [line] : [line, `    ${styled('fix', 'cyan', color)}: ${fix}`]
  })
  return [head, ...withFixes].join('\n')
}

/** Prints findings in the form asked for; with `--quiet` those that need somebody's attention only. */
export function printFindings(
  findings: readonly Finding[],
  terminal: Terminal,
  { json = false, quiet = false }: { json?: boolean; quiet?: boolean },
): void {
  const ok = allGood(findings)
  const shown = quiet ? findings.filter(({ state }) => state === 'failed') : findings
  if (json) terminal.out(JSON.stringify({ ok, findings: shown }, undefined, 2))
  else if (shown.length > 0) terminal.out(findingsTable(shown, terminal))
}

export function allGood(findings: readonly Finding[]): boolean {
  return findings.every(({ state }) => state !== 'failed')
}
