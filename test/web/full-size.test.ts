import sharp from 'sharp'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { fakeCamera, fakeResult, FakeGantry } from '../support/fake-gantry.js'
import { serveFake } from '../support/serve-fake.js'

describe.skipIf(skipsBrowser())('one camera in full size', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  it(
    'is its own picture, taken anew as long as it is looked at, and remembered',
    { timeout: 120_000 },
    async () => {
      const gantry = new FakeGantry()
      await gantry.addCamera(fakeCamera('cam-1'))
      gantry.emit(fakeResult('cam-1', 1))
      gantry.snapshotJpeg = await sharp({
        create: { width: 1280, height: 720, channels: 3, background: 'grey' },
      })
        .jpeg()
        .toBuffer()
      const { url } = await serveFake({}, { gantry })
      const { page, misdeeds } = await openPage(browser, url)
      const taken: string[] = []
      page.on('request', (request) => {
        if (request.url().includes('snapshot.jpg')) taken.push(new URL(request.url()).search)
      })
      await page.getByRole('button', { name: /^Enlarge/ }).click()
      const button = page.getByRole('button', { name: /^Full size/ })
      await button.waitFor()
      expect(await page.locator('img.full-size').count()).toBe(0)
      expect(taken).toEqual([])

      await button.click()
      const picture = page.locator('img.full-size')
      await picture.waitFor({ timeout: 30_000 })
      const widthPx = () => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth)
      await expect.poll(widthPx, { timeout: 30_000 }).toBe(1280)
      expect(await page.locator('.full-size-note').textContent()).toMatch(/^1280 × 720, of /)
      await expect.poll(() => taken.length, { timeout: 30_000 }).toBeGreaterThan(1)

      // Without boxes, from the next one on; and gone with the key.
      await page.keyboard.press('b')
      await expect.poll(() => taken.at(-1), { timeout: 30_000 }).toBe('?overlay=0')
      await page.reload()
      await page.getByRole('button', { name: /^Enlarge/ }).click()
      await picture.waitFor({ timeout: 30_000 })
      await page.keyboard.press('f')
      await picture.waitFor({ state: 'detached', timeout: 30_000 })
      expect(misdeeds).toEqual({ dialogs: [], violations: [], errors: [], foreign: [] })
      await page.context().close()
    },
  )
})
