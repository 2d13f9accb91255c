import type { FastifyReply } from 'fastify'
import { problemLine, problemMediaType, toProblem, type Problem } from './problem.js'
import { securityHeaders } from './security-headers.js'

/** Answers with an error, in the form and with the headers that every error of the service has. */
export function sendProblem(reply: FastifyReply, error: unknown): Problem {
  const { problem, headers } = toProblem(error)
  void reply
    .code(problem.status)
    .headers({ ...securityHeaders, 'cache-control': 'no-store', ...headers })
    .type(problemMediaType)
    .send(JSON.stringify(problem))
  return problem
}

/** The same in the form that Triton's clients know. */
export function sendModelProblem(reply: FastifyReply, error: unknown): Problem {
  const { problem, headers } = toProblem(error)
  void reply
    .code(problem.status)
    .headers({ ...securityHeaders, 'cache-control': 'no-store', ...headers })
    .type('application/json')
    .send(JSON.stringify({ error: problemLine(problem) }))
  return problem
}
