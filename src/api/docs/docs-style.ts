/** Style of `/docs`, which has no file of its own: the page is there without a built dashboard. Colours are those of the dashboard. */
export const docsStyle = `
:root {
  color-scheme: dark light;
  --bg: light-dark(#eef1f5, #0a0e13);
  --panel: light-dark(#ffffff, #11171f);
  --code: light-dark(#e9edf3, #1f2935);
  --line: light-dark(#dbe2ea, #223040);
  --text: light-dark(#121a24, #e8eef5);
  --muted: light-dark(#566577, #8b9bad);
  --link: light-dark(#0b5fa8, #4db8ff);
  --ok: light-dark(#0b6e3b, #34d17b);
  --warn: light-dark(#7d4d00, #f5b731);
  --bad: light-dark(#b3232a, #ff7c80);
  --mono: ui-monospace, 'SF Mono', 'Cascadia Mono', 'DejaVu Sans Mono', monospace;
}
* { box-sizing: border-box; }
html { scroll-padding-top: 12px; background: var(--bg); }
body {
  margin: 0; display: grid; grid-template-columns: 300px minmax(0, 1fr); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif;
}
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 8px; top: 8px; padding: 6px 10px; background: var(--panel); z-index: 1; }
nav {
  position: sticky; top: 0; height: 100vh; overflow: auto; padding: 20px 16px; background: var(--panel);
  border-right: 1px solid var(--line); font-size: 13px;
}
nav .title { margin: 0; font-size: 18px; font-weight: 700; }
nav .title span { color: var(--muted); font-size: 13px; font-weight: 400; }
nav h2 { margin: 18px 0 4px; font-size: 12px; text-transform: uppercase; letter-spacing: 0.06em; color: var(--muted); }
nav ul { margin: 0; padding: 0; list-style: none; }
nav li a { display: block; padding: 2px 0; color: var(--text); text-decoration: none; overflow-wrap: anywhere; }
nav li a:hover { text-decoration: underline; }
main { max-width: 980px; padding: 28px 32px 80px; min-width: 0; }
h1 { margin: 0 0 8px; font-size: 26px; }
main h2 { margin: 40px 0 4px; font-size: 20px; }
article { margin: 14px 0; padding: 16px 18px; background: var(--panel); border: 1px solid var(--line); border-radius: 12px; }
article:target { border-color: var(--link); }
h3 { margin: 0 0 4px; font-size: 15px; overflow-wrap: anywhere; }
p { margin: 4px 0 8px; }
code { padding: 0.1em 0.35em; border-radius: 5px; background: var(--code); font: 0.9em var(--mono); overflow-wrap: anywhere; }
pre {
  margin: 8px 0; padding: 10px 12px; overflow: auto; max-height: 420px; border-radius: 8px; background: var(--code);
  font: 12.5px/1.45 var(--mono);
}
.method { display: inline-block; min-width: 3.6em; font: 700 11px var(--mono); color: var(--ok); }
.method[data-method='POST'], .method[data-method='PUT'], .method[data-method='PATCH'] { color: var(--warn); }
.method[data-method='DELETE'] { color: var(--bad); }
.fields, .answers { margin: 6px 0; padding-left: 0; list-style: none; }
.fields .fields { margin-left: 8px; padding-left: 14px; border-left: 2px solid var(--line); }
.fields li, .answers li { padding: 3px 0; }
.name { font-weight: 600; }
.type { color: var(--muted); font-size: 13px; }
.status { display: inline-block; min-width: 3.4em; font: 700 12px var(--mono); color: var(--bad); }
.status[data-kind='2'], .status[data-kind='1'] { color: var(--ok); }
summary { cursor: pointer; color: var(--link); }
.guide { line-height: 1.6; }
.guide h2 { padding-top: 8px; border-top: 1px solid var(--line); }
.guide li { margin: 3px 0; }
.guide pre code { padding: 0; background: none; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; }
th, td { padding: 6px 10px; border: 1px solid var(--line); text-align: left; vertical-align: top; }
th { background: var(--panel); }
@media (max-width: 820px) {
  body { display: block; }
  nav { position: static; height: auto; max-height: 45vh; border-right: 0; border-bottom: 1px solid var(--line); }
  main { padding: 20px 16px 60px; }
}
@media print {
  body { display: block; }
  nav { display: none; }
}
`
