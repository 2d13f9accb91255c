/** Texts of all elements of that name. Answers of a store have no attributes on these, and nothing inside them. */
export function xmlFields(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, text = '']) =>
    text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(lt|gt|amp|quot|apos));/gi, (_, hex, decimal, entity: string) =>
      entity === undefined
        ? String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(String(hex), 16))
        : entities[entity.toLowerCase()]!,
    ),
  )
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

/** What is inside of the elements of that name. */
export function xmlSections(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, 'gs'))].map(([, inner = '']) => inner)
}

/** Text as it stands in XML. */
export function xmlText(text: string): string {
  return text.replace(/[<>&]/g, (c) => `&#${c.charCodeAt(0)};`)
}
