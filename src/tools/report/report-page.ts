import { escapeHtml } from './html.js'

/** A part of a page: a heading, a sentence or two below it, and HTML. */
export type ReportSection = Readonly<{ title: string; text?: string; html: string }>

export type ReportContent = Readonly<{
  title: string
  /** A line below the title. */
  subtitle: string
  sections: readonly ReportSection[]
}>

/**
 * A whole page that needs nothing but itself: no script, no picture and no font from elsewhere. It follows the light or dark setting of
 * whoever reads it, and prints.
 */
export function reportPage({ title, subtitle, sections }: ReportContent): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body>
<header><h1>${escapeHtml(title)}</h1><p>${escapeHtml(subtitle)}</p></header>
<main>
${sections.map(sectionHtml).join('\n')}
</main>
</body>
</html>
`
}

function sectionHtml({ title, text, html }: ReportSection): string {
  const words = text === undefined ? '' : `<p>${escapeHtml(text)}</p>\n`
  return `<section>\n<h2>${escapeHtml(title)}</h2>\n${words}${html}\n</section>`
}

const style = `
:root { color-scheme: light dark; --ink: #1d2327; --dim: #5b6770; --line: #d5dbe0; --paper: #ffffff;
  --c0: #1f6fb5; --c1: #c4541a; --c2: #2c8a4b; --c3: #8a4fb0; --c4: #b0862a; --c5: #b83a5e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --dim: #98a3ad; --line: #3a434b; --paper: #15191d;
  --c0: #6db3f2; --c1: #ff9e64; --c2: #7fd18f; --c3: #c79bea; --c4: #e6c35c; --c5: #ff8fab; } }
body { margin: 0 auto; max-width: 66rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 0.5rem; }
header p, section > p { color: var(--dim); margin: 0.25rem 0 0.75rem; max-width: 48rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.75rem 0.25rem 0; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--dim); font-weight: 600; } .number { text-align: right; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1.5rem; margin: 0; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 0.75rem 0; } figure svg { width: 100%; height: auto; }
img { max-width: 100%; }
svg text { fill: var(--dim); font: 12px system-ui, sans-serif; } svg .grid { stroke: var(--line); }
.better { color: var(--c2); } .worse { color: var(--c5); }
`
