import type { z } from 'zod'
import type { Awaitable, Gantry } from './gantry.js'
import type { FieldProblem } from './errors.js'

/**
 * `open` answers anyone who asks by a name of ours; `token` needs the token when one is set; `health` answers anyone by any name with its
 * status, and says more only where {@link Call} is `trusted`. There is no fourth, and no default.
 */
export type AuthRule = 'open' | 'health' | 'token'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** What a handler may use. */
export type RouteContext = Readonly<{
  gantry: Gantry
  /** Readiness as the service reports it, or `false` once stopping began. */
  draining: () => boolean
  documents: Documents
}>

/** Published documents, as JSON text; for people both on one `page`, and the pages of docs/. */
export type Documents = Readonly<{
  openapi: () => string
  asyncapi: () => string
  page: () => string
  /** HTML of a page of docs/ by its path there. */
  guide: (path: string) => string | undefined
}>

export type Call<Path, Query, Body> = Readonly<{
  path: Path
  query: Query
  body: Body
  context: RouteContext
  /** Aborted once who asked has gone without an answer. */
  signal: AbortSignal
  /** Whether who asks may know what needs the token. Only with `health` is it ever false. */
  trusted: boolean
}>

/** `body` goes out as JSON unless it is text, bytes or a stream with a `type`. */
export type Answer = Readonly<{
  status?: number
  headers?: Readonly<Record<string, string>>
  type?: string
  body?: unknown
}>

export type ResponseSpec = Readonly<{
  description: string
  schema?: z.ZodType
  /** Default: `application/json` where there is a schema. */
  type?: string
  /** Of its own, by name, with what they say. */
  headers?: Readonly<Record<string, string>>
}>

export type RouteSpec<Path extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> = Readonly<{
  method: Method
  /** With `{name}` for parameters. */
  path: string
  auth: AuthRule
  tag: 'cameras' | 'results' | 'operations' | 'documents'
  summary: string
  pathSchema?: Path
  querySchema?: Query
  /** JSON body. */
  bodySchema?: Body
  /** What the handler would refuse in a body that its schema refuses already, so that all of it is told at once. */
  alsoWrong?(body: unknown): readonly FieldProblem[]
  /** Picture body, instead of JSON; the handler gets the bytes. */
  pictureTypes?: readonly string[]
  /** Throws where `path` names nothing there is: what is wrong with the body is of no interest then. */
  find?(call: Pick<Call<z.output<Path>, undefined, undefined>, 'path' | 'context'>): Awaitable<void>
  /** Status -> what it means. 401, 403 and the errors common to all are added by the document. */
  responses: Readonly<Record<number, ResponseSpec>>
  /** Other than JSON and problems; status codes of problems this route adds. */
  problems: readonly number[]
  handle(call: Call<z.output<Path>, z.output<Query>, z.output<Body>>): Promise<Answer> | Answer
}>

export type Route = Omit<RouteSpec<z.ZodType, z.ZodType, z.ZodType>, 'handle' | 'find'> & {
  find?(call: Pick<Call<never, never, never>, 'path' | 'context'>): Awaitable<void>
  handle(call: Call<never, never, never>): Promise<Answer> | Answer
}

/** One route: what the server registers, guards and documents. */
export function route<Path extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType>(
  spec: RouteSpec<Path, Query, Body>,
): Route {
  return spec
}
