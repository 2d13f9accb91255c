import { guideLinks, type Guide } from './guides.js'
import { markup, prose, type Markup } from './markup.js'
import { fieldsMarkup, nameOf, schemaLink, typeMarkup, type ShownSchema } from './schema-markup.js'

type Ref = Readonly<{ $ref: string }>
type Content = Readonly<
  Record<string, Readonly<{ schema?: ShownSchema; examples?: Readonly<Record<string, Ref>> }>>
>
type Parameter = Readonly<{
  name: string
  in: string
  required?: boolean
  description?: string
  schema: ShownSchema
  example?: unknown
}>
type Answer = Readonly<{ description: string; content?: Content }>
type Operation = Readonly<{
  tags: readonly string[]
  summary: string
  security?: readonly unknown[]
  parameters?: readonly Parameter[]
  requestBody?: Readonly<{ content: Content }>
  responses: Readonly<Record<string, Answer | Ref>>
}>
type Named<Value> = Readonly<Record<string, Value>>

/** As much of the OpenAPI document as the page shows. */
export type ApiDocument = Readonly<{
  info: Readonly<{ title: string; version: string; description: string }>
  tags: readonly Readonly<{ name: string; description: string }>[]
  paths: Named<Named<Operation>>
  components: Readonly<{
    schemas: Named<ShownSchema>
    responses: Named<Answer>
    examples: Named<Readonly<{ value: unknown }>>
  }>
}>

/** As much of the AsyncAPI document as the page shows. */
export type MessagesDocument = Readonly<{
  info: Readonly<{ description: string }>
  channels: Named<Readonly<{ address: string; description: string; messages: Named<Ref> }>>
  components: Readonly<{
    messages: Named<Readonly<{ title: string; description?: string; payload: ShownSchema }>>
    schemas: Named<ShownSchema>
  }>
}>

type Asked = Readonly<{ method: string; path: string; operation: Operation }>

/**
 * `/docs`: API and messages, for people. One document of HTML without a script and with nothing from elsewhere, so that it can be read, searched,
 * printed and kept without a network. Its style is `/docs/style.css`.
 */
export function docsPage(
  api: ApiDocument,
  messages: MessagesDocument,
  guides: readonly Guide[] = [],
): string {
  const asked = Object.entries(api.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const tags = api.tags.map((tag) => ({
    ...tag,
    asked: asked.filter(({ operation }) => operation.tags.includes(tag.name)),
  }))
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark light">
<title>${api.info.title}: API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/style.css">
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<nav aria-label="Contents">
<p class="title">${api.info.title} <span>API ${api.info.version}</span></p>
<p><a href="./">Dashboard</a> · <a href="openapi.json">OpenAPI</a> · <a href="asyncapi.json">AsyncAPI</a></p>
${tags.map(
  (tag) => markup`<h2>${tag.name}</h2>
<ul>${tag.asked.map(
    (one) => markup`<li><a href="#${idOf(one)}">${methodMark(one)} ${shortPath(one.path)}</a></li>`,
  )}</ul>`,
)}
<h2>messages</h2>
<ul>${Object.entries(messages.channels).map(
    ([name, channel]) => markup`<li><a href="#channel-${name}">${channel.address}</a></li>`,
  )}</ul>
${guideLinks(guides, 'docs/')}
<h2>schemas</h2>
<ul>${Object.keys(api.components.schemas).map((name) => markup`<li><a href="#schema-${name}">${name}</a></li>`)}</ul>
</nav>
<main id="content">
<h1>${api.info.title}: API and messages</h1>
<p>${prose(api.info.description)}</p>
<p>In the commands <code>$GANTRY</code> stands for the address of the service, such as <code>http://127.0.0.1:8000</code>, and
<code>$TOKEN</code> for its token. A service without one needs no <code>Authorization</code>.</p>
${tags.map(
  (tag) => markup`<section><h2 id="tag-${tag.name}">${capital(tag.name)}</h2><p>${prose(tag.description)}</p>
${tag.asked.map((one) => operationMarkup(one, api))}</section>`,
)}
${messagesMarkup(messages)}
<section><h2 id="schemas">Schemas</h2><p>A field with * is always there.</p>
${Object.entries({ ...messages.components.schemas, ...api.components.schemas }).map(([name, schema]) =>
  schemaMarkup(name, schema, api),
)}</section>
</main>
</body>
</html>
`
  return page.html
}

function operationMarkup(one: Asked, api: ApiDocument): Markup {
  const { operation } = one
  const parameters = operation.parameters ?? []
  return markup`<article id="${idOf(one)}">
<h3>${methodMark(one)} <code>${one.path}</code></h3>
<p>${prose(operation.summary)}.${isOpen(operation) ? markup` <em>Without a token.</em>` : undefined}</p>
${
  parameters.length === 0
    ? undefined
    : markup`<ul class="fields">${parameters.map(
        (parameter) =>
          markup`<li><code class="name">${parameter.name}</code>${
            parameter.required === true ? markup` <b title="Must be given">*</b>` : undefined
          } <span class="type">${parameter.in}, ${typeMarkup(parameter.schema)}</span> ${prose(parameter.description)}</li>`,
      )}</ul>`
}
<pre class="ask">${curlOf(one, api)}</pre>
${operation.requestBody && bodyMarkup('Body', operation.requestBody.content)}
<ul class="answers">${Object.entries(operation.responses).map(([status, given]) => {
    const answer = '$ref' in given ? api.components.responses[nameOf(given.$ref)] : given
    const [content] = Object.values(answer?.content ?? {})
    return markup`<li><b class="status" data-kind="${status[0] ?? ''}">${status}</b> ${prose(answer?.description)}${
      content?.schema?.$ref === undefined ? undefined : markup` ${schemaLink(content.schema.$ref)}`
    }</li>`
  })}</ul>
${exampleOf(operation, api)}
</article>`
}

function bodyMarkup(title: string, content: Content): Markup {
  return markup`<p><b>${title}</b>: ${Object.entries(content).map(
    ([type, { schema }], index) =>
      markup`${index === 0 ? '' : ', or '}${
        schema?.$ref === undefined ? undefined : markup`${schemaLink(schema.$ref)} as `
      }<code>${type}</code>`,
  )}</p>`
}

/** The answer that is meant, as an example. */
function exampleOf({ responses }: Operation, { components }: ApiDocument): Markup | undefined {
  const [, good] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? []
  if (good === undefined || '$ref' in good) return undefined
  const [content] = Object.values(good.content ?? {})
  const ref = Object.values(content?.examples ?? {})[0]?.$ref
  const example = ref && components.examples[nameOf(ref)]
  if (!example) return undefined
  return markup`<details><summary>An answer</summary><pre>${JSON.stringify(example.value, null, 2)}</pre></details>`
}

/** A command line that asks it, to be pasted. `$GANTRY` and `$TOKEN` are the reader's. */
function curlOf({ method, path, operation }: Asked, { components }: ApiDocument): string {
  const given = (operation.parameters ?? []).filter(({ example }) => example !== undefined)
  const named = given
    .filter((parameter) => parameter.in === 'path')
    .reduce((text, { name, example }) => text.replace(`{${name}}`, encodeURIComponent(String(example))), path)
  const [type, content] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
  const ref = Object.values(content?.examples ?? {})[0]?.$ref
  const example = ref && components.examples[nameOf(ref)]
  const how = method === 'GET' ? '' : method === 'HEAD' ? ' -I' : ` -X ${method}`
  const login = isOpen(operation) ? '' : ' -H "Authorization: Bearer $TOKEN"'
  const data = example
    ? ` \\\n  -H 'Content-Type: ${type}' -d '${JSON.stringify(example.value)}'`
    : type?.startsWith('image/')
      ? ` \\\n  -H 'Content-Type: ${type}' --data-binary @picture.jpg`
      : ''
  return `curl${how}${login} "$GANTRY${named}"${data}`
}

function messagesMarkup({ channels, components, info }: MessagesDocument): Markup {
  return markup`<section><h2 id="messages">Messages</h2><p>${prose(info.description)}</p>
${Object.entries(channels).map(
  ([name, channel]) => markup`<article id="channel-${name}"><h3><code>${channel.address}</code></h3>
<p>${prose(channel.description)}</p>
<ul class="fields">${Object.values(channel.messages)
    .map(({ $ref }) => {
      const message = components.messages[nameOf($ref)]
      return (
        message &&
        markup`<li>${message.title}: <span class="type">${typeMarkup(message.payload)}</span> ${prose(message.description)}</li>`
      )
    })
    .filter((item) => item !== undefined)}</ul></article>`,
)}</section>`
}

function schemaMarkup(name: string, schema: ShownSchema, { components }: ApiDocument): Markup {
  const example = components.examples[name]
  return markup`<article id="schema-${name}"><h3>${name}</h3><p>${prose(schema.description)}</p>
${schema.properties === undefined ? markup`<p class="type">${typeMarkup(schema)}</p>` : undefined}
${fieldsMarkup(schema)}
${example && markup`<details><summary>An example</summary><pre>${JSON.stringify(example.value, null, 2)}</pre></details>`}</article>`
}

function isOpen({ security }: Operation): boolean {
  return (
    security !== undefined &&
    (security.length === 0 || security.some((one) => Object.keys(one as object).length === 0))
  )
}

function methodMark({ method }: Asked): Markup {
  return markup`<b class="method" data-method="${method}">${method}</b>`
}

function idOf({ method, path }: Asked): string {
  return `${method.toLowerCase()}${path.replace(/[^A-Za-z0-9]+/g, '-')}`
}

function shortPath(path: string): string {
  return path.replace('/api/v1', '')
}

function capital(word: string): string {
  return `${word[0]?.toUpperCase() ?? ''}${word.slice(1)}`
}
