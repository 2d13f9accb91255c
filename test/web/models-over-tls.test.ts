import { createHash, X509Certificate } from 'node:crypto'
import { rmSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { tinyRepository, type TinyRepository } from '../bench/tiny-model.js'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { TestService } from '../support/service.js'
import { saidBy } from '../support/shell-command.js'
import { TestAuthority } from '../support/test-authority.js'
import { underPath } from '../support/under-path.js'

const clean = { dialogs: [], violations: [], errors: [], foreign: [] }
/** Browser and models share the cores of this machine. */
const patient = { timeout: 60_000 }
const token = 'a-token-that-nobody-knows'

/** Of the key of a certificate, as Chromium names those that it is to trust. */
function keyName(certificate: string): string {
  const key = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(key).digest('base64')
}

describe.skipIf(skipsBrowser())('the page of the models of a service with server.tls', () => {
  let browser: Browser
  let authority: TestAuthority
  let repository: TinyRepository
  let service: TestService

  beforeAll(async () => {
    authority = new TestAuthority()
    repository = tinyRepository()
    const files = authority.issue('service')
    browser = await launchBrowser([
      `--ignore-certificate-errors-spki-list=${keyName(authority.text(files.cert))}`,
    ])
    service = await TestService.start({
      server: { token, tls: files },
      trust: { ca: authority.text(authority.ca) },
      pipeline: {
        engines: 0,
        models: { repository: repository.dir, control: 'explicit' },
        modelServer: { enabled: true },
      },
    })
  }, 120_000)

  afterAll(async () => {
    await service?.[Symbol.asyncDispose]()
    await browser?.close()
    authority?.remove()
    if (repository !== undefined) rmSync(repository.dir, { recursive: true, force: true })
  })

  /** What a person does on it: says the token, loads a model, asks it by the command that is shown, and unloads it. */
  async function use(page: Page, env: NodeJS.ProcessEnv): Promise<void> {
    await page.locator('[name=token]').fill('not the token')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('The service did not take that token.').waitFor(patient)
    await page.locator('[name=token]').fill(token)
    await page.getByRole('button', { name: 'Continue' }).click()
    const row = page.locator('tr[data-model="tiny"]')
    await row.getByText(/not loaded|unloaded/).waitFor(patient)
    await page.getByRole('link', { name: 'tiny', exact: true }).click()
    const detail = page.locator('[data-model-detail=tiny]')
    await detail.getByRole('button', { name: 'Load' }).click()
    await row.getByText('ready').waitFor(patient)
    await page.getByText('Ask it').waitFor(patient)
    const command = await page.getByRole('group', { name: 'Command that asks tiny' }).innerText()
    expect(command).toContain(`${new URL(page.url()).origin}${new URL(page.url()).pathname}v2/models/tiny`)
    expect(await saidBy(command, /"outputs"|error/, { ...env, GANTRY_TOKEN: token })).toContain('"outputs"')
    // Requests are counted on the page, too.
    await page.locator('.model-latency').waitFor(patient)
    await page.getByRole('button', { name: 'Unload' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Unload' }).click()
    await row.getByText('unloaded').waitFor(patient)
    expect(await page.content()).not.toContain(token)
  }

  it('logs in, tells states, loads, is asked and unloads by https', { timeout: 240_000 }, async () => {
    const { page, misdeeds } = await openPage(browser, service.url)
    onTestFinished(() => page.context().close())
    expect(new URL(page.url()).protocol).toBe('https:')
    await use(page, { CURL_CA_BUNDLE: authority.ca })
    expect(misdeeds).toEqual(clean)
  })

  it(
    'does the same under a path of a proxy that speaks TLS with the service',
    { timeout: 240_000 },
    async () => {
      const { url, astray } = await underPath(service.url, authority.text(authority.ca))
      const { page, misdeeds } = await openPage(browser, url)
      onTestFinished(() => page.context().close())
      await use(page, {})
      expect(astray).toEqual([])
      expect(misdeeds).toEqual(clean)
    },
  )

  it('is not shown to a browser that does not trust the certificate', { timeout: 60_000 }, async () => {
    const stranger = await launchBrowser()
    onTestFinished(() => stranger.close())
    const page = await (await stranger.newContext()).newPage()
    await expect(page.goto(service.url)).rejects.toThrow(/ERR_CERT_AUTHORITY_INVALID/)
  })
})
