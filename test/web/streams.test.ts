import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import type * as Client from '../../clients/typescript/src/index.js'
import { build } from 'vite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { RedService } from '../support/red-service.js'
import { tempDir } from '../support/temp-dir.js'

const patient = { timeout: 60_000 }

describe.skipIf(skipsBrowser())('streams in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  it('R120: the page asks for what it missed over a restart of the service, and goes on', async () => {
    await using red = await RedService.start()
    const { page, misdeeds } = await openPage(browser, red.service.url)
    const open = page.locator('[data-stream="open"]')
    await open.waitFor(patient)
    const said: string[] = []
    page.on('websocket', (line) => line.on('framesent', ({ payload }) => said.push(String(payload))))
    await red.restart()
    await expect
      .poll(() => said.filter((text) => text.includes('"resumeAfter"')), patient)
      .not.toHaveLength(0)
    await open.waitFor(patient)
    expect(misdeeds).toEqual({ dialogs: [], violations: [], errors: [], foreign: [] })
    await page.context().close()
  }, 180_000)

  it('R121: the client package runs on a page of another origin that is allowed, and says why it is refused', async () => {
    const folder = tempDir()
    await build({
      configFile: false,
      logLevel: 'error',
      build: {
        lib: { entry: join(import.meta.dirname, '../../clients/typescript/src/index.ts'), formats: ['es'] },
        rolldownOptions: { output: { entryFileNames: 'client.js' } },
        outDir: folder,
        target: 'es2022',
      },
    })
    const site = await servedSite({
      '/': [
        'text/html',
        `<!doctype html><script type="module">import * as client from '/client.js'; globalThis.client = client</script>`,
      ],
      '/client.js': ['text/javascript', readFileSync(join(folder, 'client.js'), 'utf8')],
    })
    const token = 'a-token-of-the-test'
    await using red = await RedService.start({ server: { token, allowedOrigins: [site.url] } })
    const { page } = await openPage(browser, site.url)
    const told = await page.evaluate(
      async ({ url, token }) => {
        const { connect, GantryClientError, GantryApi } = (globalThis as unknown as { client: typeof Client })
          .client
        const cameras: string[] = []
        for await (const message of connect({ url, token })) {
          if (message.type === 'detections') cameras.push(message.cameraId)
          if (cameras.length === 3) break
        }
        const codes: string[] = []
        for (const refused of [
          { url, token: 'another' },
          { url: `${url}/elsewhere`, token },
        ])
          try {
            for await (const message of connect(refused)) codes.push(message.type)
          } catch (error) {
            codes.push(error instanceof GantryClientError ? error.code : String(error))
          }
        const { seq } = await new GantryApi({ url, token }).latest('yard')
        return { cameras, codes, seq }
      },
      { url: red.service.url, token },
    )
    await page.context().close()
    site.server.close()
    expect(told).toEqual({
      cameras: ['yard', 'yard', 'yard'],
      codes: ['GANTRY_UNAUTHORIZED', 'GANTRY_NOT_FOUND'],
      seq: expect.any(Number) as number,
    })
  }, 180_000)
})

async function servedSite(
  files: Readonly<Record<string, readonly [type: string, text: string]>>,
): Promise<Readonly<{ url: string; server: Server }>> {
  const server = createServer(({ url = '' }, response) => {
    const [type, text] = files[url] ?? []
    if (type === undefined) response.writeHead(404).end()
    else response.writeHead(200, { 'content-type': type }).end(text)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}
