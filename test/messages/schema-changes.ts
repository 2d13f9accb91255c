/** Part of a JSON Schema that these checks look at. */
export type SchemaNode = Readonly<{
  type?: string | readonly string[]
  const?: unknown
  enum?: readonly unknown[]
  properties?: Readonly<Record<string, SchemaNode>>
  required?: readonly string[]
  items?: SchemaNode
  oneOf?: readonly SchemaNode[]
  anyOf?: readonly SchemaNode[]
}>

/**
 * Who must still be understood after a change: readers of what we send, who know the older schema, or senders of what we read, who
 * know the older schema.
 */
export type Direction = 'sent' | 'read'

/** Changes between two versions that break somebody who knows the older one; none when there are only additions. */
export function breakingChanges(
  older: SchemaNode,
  newer: SchemaNode,
  direction: Direction,
  path = '$',
): readonly string[] {
  return [
    ...typeChanges(older, newer, path),
    ...valueChanges(older, newer, direction, path),
    ...propertyChanges(older, newer, direction, path),
    ...variantChanges(older, newer, direction, path),
    ...(older.items === undefined || newer.items === undefined
      ? []
      : breakingChanges(older.items, newer.items, direction, `${path}[]`)),
  ]
}

function typeChanges(older: SchemaNode, newer: SchemaNode, path: string): readonly string[] {
  const same = JSON.stringify(older.type) === JSON.stringify(newer.type)
  return same ? [] : [`${path}: type ${JSON.stringify(older.type)} became ${JSON.stringify(newer.type)}`]
}

function values({ enum: values, const: value }: SchemaNode): readonly unknown[] | undefined {
  return value === undefined ? values : [value]
}

/** A reader must know every value sent; a sender's values must all be taken. */
function valueChanges(
  older: SchemaNode,
  newer: SchemaNode,
  direction: Direction,
  path: string,
): readonly string[] {
  const [had, has] = [values(older), values(newer)]
  const [sent, known] = direction === 'sent' ? [has, had] : [had, has]
  if (known === undefined) return []
  if (sent === undefined) return [`${path}: any value may come now`]
  return sent.filter((value) => !known.includes(value)).map((value) => `${path}: value ${String(value)}`)
}

function propertyChanges(
  older: SchemaNode,
  newer: SchemaNode,
  direction: Direction,
  path: string,
): readonly string[] {
  const has = newer.properties ?? {}
  const kept = Object.entries(older.properties ?? {}).flatMap(([name, property]) => {
    const now = has[name]
    if (now === undefined) return [`${path}.${name}: removed`]
    return breakingChanges(property, now, direction, `${path}.${name}`)
  })
  const [must, does] = direction === 'sent' ? [older, newer] : [newer, older]
  const missing = (must.required ?? []).filter((name) => !(does.required ?? []).includes(name))
  const change = direction === 'sent' ? 'no longer always there' : 'required now'
  return [...kept, ...missing.map((name) => `${path}.${name}: ${change}`)]
}

/** Variants are told apart by their `type`. */
function variantChanges(
  older: SchemaNode,
  newer: SchemaNode,
  direction: Direction,
  path: string,
): readonly string[] {
  const had = older.oneOf ?? older.anyOf ?? []
  const has = newer.oneOf ?? newer.anyOf ?? []
  return had.flatMap((variant) => {
    const type = variant.properties?.['type']?.const
    const now = has.find(({ properties }) => properties?.['type']?.const === type)
    if (now === undefined) return [`${path}: variant ${String(type)} removed`]
    return breakingChanges(variant, now, direction, `${path}<${String(type)}>`)
  })
}
