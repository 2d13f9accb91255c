import { markup, prose, type Markup } from './markup.js'

/** As much of JSON Schema as the documents of this service use. */
export type ShownSchema = Readonly<{
  $ref?: string
  type?: string | readonly string[]
  description?: string
  properties?: Readonly<Record<string, ShownSchema>>
  required?: readonly string[]
  additionalProperties?: boolean | ShownSchema
  items?: ShownSchema
  anyOf?: readonly ShownSchema[]
  oneOf?: readonly ShownSchema[]
  enum?: readonly unknown[]
  const?: unknown
  default?: unknown
  format?: string
  pattern?: string
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  exclusiveMaximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
}>

/** A link to a named schema of the page. */
export function schemaLink(ref: string): Markup {
  const name = nameOf(ref)
  return markup`<a href="#schema-${name}">${name}</a>`
}

/** Last step of a reference. */
export function nameOf(ref: string): string {
  return ref.split('/').at(-1) ?? ref
}

/** What a value is, in a few words: `string`, `integer, 1 to 1000`, `list of Camera`. */
export function typeMarkup(schema: ShownSchema): Markup {
  if (schema.$ref !== undefined) return schemaLink(schema.$ref)
  if (schema.const !== undefined) return markup`<code>${JSON.stringify(schema.const)}</code>`
  if (schema.enum !== undefined)
    return joined(
      schema.enum.map((value) => markup`<code>${JSON.stringify(value)}</code>`),
      ' | ',
    )
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) return joined(choices.map(typeMarkup), ' or ')
  if (schema.items !== undefined) return markup`list of ${typeMarkup(schema.items)}${bounds(schema)}`
  const values = schema.additionalProperties
  if (schema.type === 'object' && schema.properties === undefined && typeof values === 'object')
    return markup`names to ${typeMarkup(values)}`
  const type = schema.type ?? 'any'
  const words = typeof type === 'string' ? type : type.join(' or ')
  return markup`${schema.format ?? words}${bounds(schema)}`
}

function bounds(schema: ShownSchema): Markup {
  const least = schema.minimum ?? schema.minLength ?? schema.minItems
  const most = schema.maximum ?? schema.maxLength ?? schema.maxItems
  const above = schema.exclusiveMinimum
  const unit = schema.type === 'string' ? ' characters' : ''
  // What JSON numbers can hold says nothing.
  const isTold = (bound: number | undefined): bound is number =>
    bound !== undefined && Math.abs(bound) < Number.MAX_SAFE_INTEGER
  const texts = [
    ...(isTold(above) ? [`over ${above}`] : []),
    ...(isTold(least) && isTold(most) ? [`${least} to ${most}${unit}`] : []),
    ...(isTold(least) && !isTold(most) && least !== 0 ? [`at least ${least}${unit}`] : []),
    ...(!isTold(least) && isTold(most) ? [`at most ${most}${unit}`] : []),
  ]
  return texts.length === 0 ? markup`` : markup`, ${texts.join(', ')}`
}

/** The fields of a schema, those of objects inside of it with them; empty for what has none. */
export function fieldsMarkup(schema: ShownSchema): Markup {
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) return markup`${choices.map(fieldsMarkup)}`
  if (schema.items !== undefined) return fieldsMarkup(schema.items)
  if (typeof schema.additionalProperties === 'object' && schema.properties === undefined)
    return fieldsMarkup(schema.additionalProperties)
  const { properties, required = [] } = schema
  if (properties === undefined) return markup``
  return markup`<ul class="fields">${Object.entries(properties).map(
    ([name, field]) =>
      markup`<li><code class="name">${name}</code>${
        required.includes(name) ? markup` <b title="Always there">*</b>` : undefined
      } <span class="type">${typeMarkup(field)}</span>${
        field.default === undefined
          ? undefined
          : markup` <span class="type">= ${JSON.stringify(field.default)}</span>`
      } ${prose(field.description)}${fieldsMarkup(field)}</li>`,
  )}</ul>`
}

function joined(parts: readonly Markup[], between: string): Markup {
  return markup`${parts.map((part, index) => markup`${index === 0 ? '' : between}${part}`)}`
}
