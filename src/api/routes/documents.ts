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
]

function document(text: string): Answer {
  return { type: 'application/json; charset=utf-8', body: text }
}
