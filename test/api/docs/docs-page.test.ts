import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Browser } from 'playwright-core'
import { asyncApiDocument } from '../../../src/messages/asyncapi.js'
import { docsPage, type ApiDocument, type MessagesDocument } from '../../../src/api/docs/docs-page.js'
import { Guides } from '../../../src/api/docs/guides.js'
import { openApiDocument } from '../../../src/api/openapi.js'
import { launchBrowser, openPage, skipsBrowser } from '../../support/browser.js'
import { ask } from '../../support/http.js'
import { serveFake } from '../../support/serve-fake.js'

const plain = <Value>(document: unknown): Value => JSON.parse(JSON.stringify(document)) as Value
const api = plain<ApiDocument>(openApiDocument())
const messages = plain<MessagesDocument>(asyncApiDocument())
const page = docsPage(api, messages, new Guides().list)
const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)

describe('the page of the documents', () => {
  it('is there for people without a token, and holds every operation and schema', async () => {
    const { url } = await serveFake({ token: 'a-token-of-thirty-two-characters' })
    const reply = await ask(`${url}/docs`)
    expect([reply.status, reply.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(reply.text).toBe(page)
    for (const path of Object.keys(api.paths)) expect(page).toContain(`<code>${path}</code>`)
    for (const name of [...Object.keys(api.components.schemas), ...Object.keys(messages.components.schemas)])
      expect(ids).toContain(`schema-${name}`)
    expect((await ask(`${url}/docs/style.css`)).headers['content-type']).toBe('text/css; charset=utf-8')
  })

  it('needs nothing from elsewhere, and no script', () => {
    expect(page).not.toMatch(/<script|<iframe|<img|@import|javascript:| on\w+=/i)
    const links = [...page.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, link]) => link ?? '')
    expect(links.filter((link) => /^(\w+:|\/)/.test(link) && link !== 'data:,')).toEqual([])
  })

  it('has every place that it links to, once', () => {
    const asked = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id)
    expect(asked.filter((id) => !ids.includes(id))).toEqual([])
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('shows text as text', () => {
    const evil = '<img src=x onerror=alert(1)>'
    const [path = ''] = Object.keys(api.paths)
    const [method = ''] = Object.keys(api.paths[path] ?? {})
    const operation = { ...api.paths[path]![method]!, summary: evil }
    const hostile = docsPage({ ...api, paths: { [evil]: { [method]: operation } } }, messages)
    expect(hostile).not.toContain('<img')
    expect(hostile).toContain('&lt;img src=x')
  })
})

describe.skipIf(skipsBrowser())('the page of the documents in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  it.each([
    ['phone', { width: 390, height: 844 }],
    ['desktop', { width: 1440, height: 900 }],
  ])('is read without a fault and without scrolling sideways (%s)', async (_, viewport) => {
    const { url } = await serveFake()
    const { page, misdeeds, consoleErrors } = await openPage(browser, `${url}/docs`, { viewport })
    await page.getByRole('link', { name: 'POST /cameras', exact: true }).click()
    await page.locator('#post-api-v1-cameras:target').waitFor()
    const width = await page.evaluate<number>('document.documentElement.scrollWidth')
    expect(width).toBeLessThanOrEqual(viewport.width)
    expect([misdeeds.violations, misdeeds.errors, misdeeds.foreign, consoleErrors]).toEqual([[], [], [], []])
    await page.context().close()
  })
})
