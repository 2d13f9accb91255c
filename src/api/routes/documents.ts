import { z } from 'zod'
import { NotFoundError } from '../../cameras/engine-errors.js'
import { docsStyle } from '../docs/docs-style.js'
import { route, type Answer, type RouteContext } from '../route.js'

/** The published descriptions of the API and of the messages. */
export const documentRoutes = [
  route({
    method: 'GET',
    path: '/openapi.json',
    auth: 'token',
    tag: 'documents',
    summary: 'This description (OpenAPI 3.1)',
    responses: { 200: { description: 'The document.', type: 'application/json' } },
    problems: [],
    handle: ({ context }) => document(context.documents.openapi()),
  }),
  route({
    method: 'GET',
    path: '/asyncapi.json',
    auth: 'token',
    tag: 'documents',
    summary: 'The messages of WebSocket and Kafka (AsyncAPI)',
    responses: { 200: { description: 'The document.', type: 'application/json' } },
    problems: [],
    handle: ({ context }) => document(context.documents.asyncapi()),
  }),
  route({
    method: 'GET',
    path: '/docs',
    auth: 'open',
    tag: 'documents',
    summary: 'Both descriptions for people, on one page that needs no network',
    responses: { 200: { description: 'The page.', type: 'text/html; charset=utf-8' } },
    problems: [],
    handle: ({ context }) => ({ type: 'text/html; charset=utf-8', body: context.documents.page() }),
  }),
  route({
    method: 'GET',
    path: '/docs/style.css',
    auth: 'open',
    tag: 'documents',
    summary: 'How that page looks',
    responses: { 200: { description: 'The style sheet.', type: 'text/css; charset=utf-8' } },
    problems: [],
    handle: () => ({ type: 'text/css; charset=utf-8', body: docsStyle }),
  }),
  route({
    method: 'GET',
    path: '/docs/{guide}',
    auth: 'open',
    tag: 'documents',
    summary: 'A page of the documentation, as docs/ of the project has it',
    pathSchema: z.strictObject({ guide: z.string().max(128) }),
    responses: { 200: { description: 'The page.', type: 'text/html; charset=utf-8' } },
    problems: [404],
    handle: ({ path, context }) => guide(context, path.guide),
  }),
  route({
    method: 'GET',
    path: '/docs/{folder}/{page}',
    auth: 'open',
    tag: 'documents',
    summary: 'A page of the documentation in a folder, such as a runbook',
    pathSchema: z.strictObject({ folder: z.string().max(128), page: z.string().max(128) }),
    responses: { 200: { description: 'The page.', type: 'text/html; charset=utf-8' } },
    problems: [404],
    handle: ({ path, context }) => guide(context, `${path.folder}/${path.page}`),
  }),
]

function guide({ documents }: RouteContext, path: string): Answer {
  const html = documents.guide(path)
  if (html === undefined)
    throw new NotFoundError(`there is no page "${path}"`, '/docs lists the pages there are.')
  return { type: 'text/html; charset=utf-8', body: html }
}

function document(text: string): Answer {
  return { type: 'application/json; charset=utf-8', body: text }
}
