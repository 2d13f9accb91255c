import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Marked } from 'marked'
import { gfmHeadingId } from 'marked-gfm-heading-id'
import { Markup, markup } from './markup.js'

/** A page of `docs/`: `runbooks/engine-down.md` and its first heading. */
export type Guide = Readonly<{ path: string; title: string }>

const ownFolder = fileURLToPath(new URL('../../../docs/', import.meta.url))

/**
 * The pages of the folder `docs/` of this installation as HTML, by the paths they have there. They are read when they are asked for; an
 * installation without the folder has none.
 */
export class Guides {
  readonly #folder: string
  readonly #pages = new Map<string, string>()
  #list: readonly Guide[] | undefined

  constructor(folder: string = ownFolder) {
    this.#folder = folder
  }

  /** Sorted, those of the folder itself first. */
  get list(): readonly Guide[] {
    this.#list ??= this.#read()
    return this.#list
  }

  /** HTML of a page; `undefined` where there is none of that path. */
  page(path: string): string | undefined {
    const guide = this.list.find((one) => one.path === path)
    if (guide === undefined) return undefined
    const made = this.#pages.get(path) ?? this.#page(guide)
    this.#pages.set(path, made)
    return made
  }

  #read(): readonly Guide[] {
    let entries
    try {
      entries = readdirSync(this.#folder, { recursive: true, withFileTypes: true })
    } catch {
      return []
    }
    return entries
      .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
      .map((entry) => relative(this.#folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
      .filter((path) => path.split('/').length <= 2)
      .map((path) => ({ path, title: titleOf(this.#text(path)) ?? path }))
      .sort((one, other) => depth(one) - depth(other) || (one.path < other.path ? -1 : 1))
  }

  #text(path: string): string {
    return readFileSync(join(this.#folder, path), 'utf8')
  }

  #page({ path, title }: Guide): string {
    const up = path.includes('/') ? '../../' : '../'
    const known = new Set(this.list.map((guide) => guide.path))
    const html = new Markup(htmlOf(this.#text(path), path, known))
    return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark light">
<title>${title}: Gantry</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${up}docs/style.css">
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<nav aria-label="Contents">
<p class="title">Gantry</p>
<p><a href="${up}">Dashboard</a> · <a href="${up}docs">API</a></p>
${guideLinks(this.list, `${up}docs/`)}
</nav>
<main id="content" class="guide">${html}</main>
</body>
</html>
`.html
  }
}

/** Links to all pages, by folder. @param base - path of `/docs/` from the page that has them. */
export function guideLinks(guides: readonly Guide[], base: string): Markup {
  const folders = new Map<string, Guide[]>()
  for (const guide of guides) {
    const [folder] = guide.path.includes('/') ? guide.path.split('/') : ['guides']
    folders.set(folder ?? '', [...(folders.get(folder ?? '') ?? []), guide])
  }
  return markup`${[...folders].map(
    ([folder, pages]) => markup`<h2>${folder}</h2>
<ul>${pages.map(({ path, title }) => markup`<li><a href="${base}${path}">${title}</a></li>`)}</ul>
`,
  )}`
}

function depth({ path }: Guide): number {
  return path.split('/').length
}

function titleOf(text: string): string | undefined {
  return /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '')
}

/** Markdown of this project as HTML. What a link leads to and is not served is text; pictures are their text. */
function htmlOf(text: string, path: string, known: ReadonlySet<string>): string {
  const marked = new Marked({ gfm: true })
  marked.use(gfmHeadingId())
  marked.use({
    renderer: {
      link(token) {
        const inner = this.parser.parseInline(token.tokens)
        const [target = ''] = token.href.split('#')
        const isHere = target === '' || known.has(posix.join(posix.dirname(path), target))
        return isHere || /^https?:/.test(target) ? `<a href="${encodeURI(token.href)}">${inner}</a>` : inner
      },
      image: ({ text: instead }) => markup`${instead}`.html,
    },
  })
  const html = marked.parse(text, { async: false })
  return html
    .replaceAll('<table>', '<div class="table" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
}
