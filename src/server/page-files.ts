import fastifyStatic from '@fastify/static'
import type { FastifyInstance } from 'fastify'
import { readdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { DocumentMissingError } from './errors.js'

/**
 * The built page. Its files hold no data, so that a browser can load them and then ask for the token.
 *
 * Every file is its own route, taken from the folder at start: a path outside it, a link, a hidden file or a folder is no route.
 * Names under `assets/` carry a hash of their content and may be cached for ever.
 */
export async function servePage(app: FastifyInstance, webRoot: string): Promise<void> {
  const files = await pageFiles(webRoot)
  const config = { auth: 'open' } as const
  if (!files.includes('index.html')) {
    app.get('/', { config }, () => {
      throw new DocumentMissingError('the dashboard')
    })
    return
  }
  await app.register(fastifyStatic, { root: webRoot, serve: false, cacheControl: false })
  for (const file of files) {
    const cacheControl = file.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache'
    app.get(file === 'index.html' ? '/' : `/${file}`, { config }, (_request, reply) =>
      reply.header('cache-control', cacheControl).sendFile(file),
    )
  }
}

/** Paths under the folder with `/` between parts; empty when there is no folder. */
async function pageFiles(webRoot: string): Promise<string[]> {
  const entries = await readdir(webRoot, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(webRoot, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((path) => !/(^|\/)\./.test(path))
}
