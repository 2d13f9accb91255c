import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Guides } from '../../../src/api/docs/guides.js'
import { problemSchema } from '../../../src/api/problem.js'
import { ask } from '../../support/http.js'
import { serveFake } from '../../support/serve-fake.js'
import { tempDir } from '../../support/temp-dir.js'

const guides = new Guides()
const idsOf = (html: string) => [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)

describe('the pages of docs/', () => {
  it('are served to people without a token, by the paths that they have in the project', async () => {
    const { url } = await serveFake({ token: 'a-token-of-thirty-two-characters' })
    for (const path of ['metrics.md', 'runbooks/engine-down.md', 'decisions/README.md']) {
      const reply = await ask(`${url}/docs/${path}`)
      expect([path, reply.status, reply.headers['content-type']]).toEqual([
        path,
        200,
        'text/html; charset=utf-8',
      ])
      expect(reply.text).toContain('<h1')
    }
  })

  it.each([
    'nothing.md',
    'runbooks/nothing.md',
    '..%2fpackage.json',
    'runbooks/..%2f..%2fpackage.json',
    'dashboard.jpg',
  ])('are those and no other files: %s', async (path) => {
    const { url } = await serveFake()
    const reply = await ask(`${url}/docs/${path}`)
    expect([reply.status, problemSchema.parse(reply.json).code]).toEqual([404, 'GANTRY_NOT_FOUND'])
  })

  it.each(guides.list.map(({ path }) => [path] as const))('lead to nothing that is not there: %s', (path) => {
    const html = guides.page(path) ?? ''
    expect(html).not.toMatch(/<script|<img|<iframe/)
    const broken = [...html.matchAll(/href="([^"]+)"/g)]
      .map(([, link = '']) => link)
      .filter((link) => !/^(https?:|data:)/.test(link))
      .filter((link) => {
        const at = new URL(link, `http://host/docs/${path}`)
        if (['/', '/docs', '/docs/style.css'].includes(at.pathname)) return false
        const target = posix.relative('/docs', at.pathname)
        const there = guides.page(target)
        return there === undefined || (at.hash !== '' && !idsOf(there).includes(at.hash.slice(1)))
      })
    expect(broken).toEqual([])
  })

  it('are none where the installation has no such folder', () => {
    expect(new Guides(`${tempDir()}/nothing`).list).toEqual([])
  })
})
