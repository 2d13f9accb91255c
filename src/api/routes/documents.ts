import { docsStyle } from '../docs/docs-style.js'
import { route, type Answer } from '../route.js'

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
]

function document(text: string): Answer {
  return { type: 'application/json; charset=utf-8', body: text }
}
