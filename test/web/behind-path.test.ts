import { createServer, request, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { fakeCamera, fakeResult, FakeGantry } from '../support/fake-gantry.js'
import { fakeModel, fakeModelList, fakeModelServer } from '../support/fake-models.js'
import { serveFake } from '../support/serve-fake.js'
import { plainPicture } from '../support/still-pictures.js'

/** A proxy that gives the service out under `/gantry/` alone, and takes that away before it asks. @returns its URL, and what came elsewhere. */
async function underPath(serviceUrl: string): Promise<Readonly<{ url: string; astray: string[] }>> {
  const { hostname, port } = new URL(serviceUrl)
  const astray: string[] = []
  const pathOf = ({ url = '' }: IncomingMessage): string | undefined => {
    if (url.startsWith('/gantry/')) return url.slice('/gantry'.length)
    if (url !== '/favicon.ico') astray.push(url)
    return undefined
  }
  const proxy = createServer((asked, answer) => {
    const path = pathOf(asked)
    if (path === undefined) return void answer.writeHead(404).end()
    const { method, headers } = asked
    const inner = request({ hostname, port, path, method, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(answer)
    })
    inner.on('error', () => answer.destroy())
    asked.pipe(inner)
  })
  proxy.on('upgrade', (asked, socket, head) => {
    const path = pathOf(asked)
    if (path === undefined) return void socket.destroy()
    const inner = connect(Number(port), hostname, () => {
      const lines = asked.rawHeaders.flatMap((text, at, all) =>
        at % 2 === 0 ? [`${text}: ${all[at + 1]}`] : [],
      )
      inner.write(`GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
      inner.write(head)
      socket.pipe(inner).pipe(socket)
    })
    for (const end of [socket, inner])
      end.on('error', () => [socket, inner].forEach((each) => each.destroy()))
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/gantry/`, astray }
}

describe.skipIf(skipsBrowser())('the page under a path of a reverse proxy', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  it(
    'shows cameras that move and models, and asks nothing beside its path',
    { timeout: 120_000 },
    async () => {
      const gantry = new FakeGantry()
      await gantry.addCamera(fakeCamera('dock'))
      gantry.modelServer = fakeModelServer
      gantry.modelList = fakeModelList([fakeModel('ppe_detect')])
      const { url, astray } = await underPath((await serveFake({}, { gantry })).url)
      const picture = await plainPicture('#3c3c3c', 'jpeg', { width: 640, height: 360 })
      let seq = 0
      const timer = setInterval(() => gantry.emit(fakeResult('dock', (seq += 1)), picture), 200)
      onTestFinished(() => clearInterval(timer))
      const { page, misdeeds } = await openPage(browser, url)
      onTestFinished(() => page.context().close())
      await page.locator('[data-camera=dock] canvas[data-seq]').waitFor({ timeout: 30_000 })
      await page.locator('[data-stream=open]').waitFor({ timeout: 30_000 })
      await page.getByRole('link', { name: 'Models', exact: true }).click()
      await page.locator('tr[data-model=ppe_detect]').waitFor({ timeout: 30_000 })
      expect(new URL(page.url()).pathname).toBe('/gantry/')
      await page.getByRole('link', { name: 'ppe_detect' }).click()
      await page
        .locator('[data-model-detail]')
        .getByText(`${url}v2/models/ppe_detect`)
        .first()
        .waitFor({ timeout: 30_000 })
      await page.getByRole('button', { name: 'Unload' }).waitFor()
      await page.reload()
      await page.locator('[data-model-detail]').waitFor({ timeout: 30_000 })
      expect(astray).toEqual([])
      expect(misdeeds).toEqual({ dialogs: [], violations: [], errors: [], foreign: [] })
    },
  )
})
