import { accessSync, constants } from 'node:fs'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'

const executablePath = process.env['GANTRY_CHROMIUM'] ?? '/usr/bin/chromium'

function isThere(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Whether tests in a browser are to be skipped on this machine, said loudly.
 *
 * @throws in CI, where nothing may be skipped.
 */
export function skipsBrowser(): boolean {
  if (isThere(executablePath)) return false
  const text = `SKIPPED: tests of the page need ${executablePath} (apt-get install chromium)`
  if (process.env['CI'] === 'true') throw new Error(text)
  process.stderr.write(`\n${text}\n`)
  return true
}

/** Debian's Chromium, headless. The caller closes it. @param more - arguments of its own. */
export function launchBrowser(more: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath,
    headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', ...more],
  })
}

/** What a page did that it must not do. */
export type Misdeeds = Readonly<{
  dialogs: string[]
  violations: string[]
  errors: string[]
  foreign: string[]
}>

/**
 * A fresh page that keeps count of script dialogs, policy violations, errors and requests to other hosts. Errors on its console are
 * given apart, as answers of 400 and above, which may be meant, are among them.
 */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Readonly<{ page: Page; misdeeds: Misdeeds; consoleErrors: readonly string[] }>> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
  const page = await context.newPage()
  const misdeeds: Misdeeds = { dialogs: [], violations: [], errors: [], foreign: [] }
  const consoleErrors: string[] = []
  page.on('dialog', (dialog) => {
    misdeeds.dialogs.push(dialog.message())
    void dialog.dismiss()
  })
  page.on('pageerror', (error) => misdeeds.errors.push(error.message))
  page.on('console', (message) => {
    if (/content security policy/i.test(message.text())) misdeeds.violations.push(message.text())
    if (message.type() === 'error') consoleErrors.push(message.text())
  })
  page.on('request', (request) => {
    const { protocol, host } = new URL(request.url())
    if (/^(http|ws)/.test(protocol) && host !== new URL(url).host) misdeeds.foreign.push(request.url())
  })
  await page.goto(url)
  return { page, misdeeds, consoleErrors }
}
