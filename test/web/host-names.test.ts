import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { serveFake } from '../support/serve-fake.js'

const token = 'canary-token-0123456789'

/** In the page: status and text of a request, or that the browser kept the answer to itself. */
function asked(page: Page, url: string, init: RequestInit = {}): Promise<string> {
  return page.evaluate(
    ([at, how]) =>
      fetch(at, how).then(
        async (answer) => `${answer.status} ${await answer.text()}`,
        () => 'kept from the page',
      ),
    [url, init] as const,
  )
}

/** In the page: whether a client of the stream is let in. */
function streams(page: Page, url: string): Promise<boolean> {
  return page.evaluate(
    (at) =>
      new Promise<boolean>((resolve) => {
        const socket = new WebSocket(at, 'gantry.v1')
        socket.onopen = () => resolve(true)
        socket.onerror = () => resolve(false)
      }),
    `${url.replace('http', 'ws')}/api/v1/stream`,
  )
}

const addCamera = (headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({ id: 'a', url: 'push:' }),
})

describe.skipIf(skipsBrowser())('a browser that is led to the service by a name', () => {
  let browser: Browser

  beforeAll(async () => {
    browser = await launchBrowser(['--host-resolver-rules=MAP *.example 127.0.0.1'])
  })
  afterAll(() => browser.close())

  async function open(url: string): Promise<Page> {
    const { page } = await openPage(browser, url)
    onTestFinished(() => page.context().close())
    return page
  }

  it('S6: gives a page that rebinds its name nothing but the status', async () => {
    const { url, gantry } = await serveFake({ allowedHosts: ['gantry.example'] })
    const evil = url.replace('127.0.0.1', 'evil.example')
    const page = await open(`${evil}/`)
    expect(await page.textContent('body')).toContain('server.allowedHosts')
    expect(await asked(page, '/api/v1/cameras')).toMatch(/^403/)
    expect(await asked(page, '/api/v1/cameras', addCamera())).toMatch(/^403/)
    expect(await asked(page, '/readyz')).toBe('200 {"ready":true}')
    expect(await streams(page, evil)).toBe(false)
    expect(gantry.cameras()).toEqual([])
  })

  it('S6: changes nothing for such a page, not even with the token', async () => {
    const { url, gantry } = await serveFake({ token })
    const page = await open(`${url.replace('127.0.0.1', 'evil.example')}/`)
    expect(await asked(page, '/api/v1/cameras')).toMatch(/^401/)
    expect(await asked(page, '/api/v1/cameras', addCamera({ authorization: `Bearer ${token}` }))).toMatch(
      /^403/,
    )
    expect(gantry.cameras()).toEqual([])
  })

  it('S6: keeps every answer from the page of another site', async () => {
    const { url } = await serveFake({ allowedHosts: ['gantry.example'] })
    const site = createServer((socket) =>
      socket.end(
        'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<title>evil</title>',
      ),
    ).listen(0, '127.0.0.1')
    await once(site, 'listening')
    onTestFinished(() => void site.close())
    const page = await open(`http://evil.example:${(site.address() as AddressInfo).port}/`)
    for (const at of [
      url,
      url.replace('127.0.0.1', 'localhost'),
      url.replace('127.0.0.1', 'gantry.example'),
    ]) {
      for (const path of ['/readyz', '/healthz', '/api/v1/cameras'])
        for (const mode of ['cors', 'no-cors'] as const)
          expect([at, path, await asked(page, at + path, { mode })]).toEqual([at, path, 'kept from the page'])
      expect(await streams(page, at)).toBe(false)
    }
  })

  it('works as a page of the service where the name is allowed', async () => {
    const { url, gantry } = await serveFake({ allowedHosts: ['.example'] })
    const own = url.replace('127.0.0.1', 'gantry.example')
    const page = await open(`${own}/`)
    expect(await page.title()).toContain('Gantry')
    expect(await asked(page, '/api/v1/cameras', addCamera())).toMatch(/^201/)
    expect(await streams(page, own)).toBe(true)
    expect(gantry.cameras()).toHaveLength(1)
  })
})
