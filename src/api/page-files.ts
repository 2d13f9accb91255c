import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { PageMissingError } from './errors.js'
import { etagOf, isKnown } from './etag.js'

const mediaTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
}

type PageFile = Readonly<{
  mediaType: string
  cacheControl: string
  etag: string
  plain: Buffer
  gzipped: Buffer
}>

/**
 * The built page. Its files hold no data, so that a browser can load them and then ask for the token.
 *
 * They are read once, at start: a path outside the folder, a link or a hidden file is no route, and a build that replaces them
 * meanwhile cannot give a browser the halves of two versions. Names under `assets/` carry a hash of their content and may be
 * cached for ever.
 */
export async function servePage(app: FastifyInstance, webRoot: string): Promise<void> {
  const paths = await pagePaths(webRoot)
  const config = { auth: 'open' } as const
  if (!paths.includes('index.html')) {
    app.get('/', { config }, () => {
      throw new PageMissingError()
    })
    return
  }
  for (const path of paths) {
    const file = await readPageFile(webRoot, path)
    app.get(path === 'index.html' ? '/' : `/${path}`, { config }, (request, reply) =>
      send(request, reply, file),
    )
  }
}

/** Paths under the folder with `/` between parts; empty when there is no folder. */
async function pagePaths(webRoot: string): Promise<string[]> {
  const entries = await readdir(webRoot, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(webRoot, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((path) => !/(^|\/)\./.test(path) && extname(path) in mediaTypes)
}

async function readPageFile(webRoot: string, path: string): Promise<PageFile> {
  const plain = await readFile(join(webRoot, path))
  return {
    plain,
    gzipped: await promisify(gzip)(plain),
    etag: etagOf(plain),
    mediaType: mediaTypes[extname(path)] ?? 'application/octet-stream',
    cacheControl: path.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
  }
}

function send(request: FastifyRequest, reply: FastifyReply, file: PageFile): FastifyReply {
  const { mediaType, cacheControl, etag, plain, gzipped } = file
  void reply.headers({ 'cache-control': cacheControl, etag, vary: 'Accept-Encoding' }).type(mediaType)
  if (isKnown(etag, request.headers['if-none-match'])) return reply.code(304).send()
  const shrinks = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '') && gzipped.length < plain.length
  return shrinks ? reply.header('content-encoding', 'gzip').send(gzipped) : reply.send(plain)
}
