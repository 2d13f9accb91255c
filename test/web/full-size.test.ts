import { readFile } from 'node:fs/promises'
import sharp from 'sharp'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { fakeCamera, fakeResult, FakeGantry } from '../support/fake-gantry.js'
import { serveFake } from '../support/serve-fake.js'
import { plainPicture } from '../support/still-pictures.js'

const clean = { dialogs: [], violations: [], errors: [], foreign: [] }
const patient = { timeout: 30_000 }
const large = { width: 1280, height: 720 }

/** A service with one camera that moves: 640x360 of 1280x720 unless told otherwise. */
async function moving({ sent = { width: 640, height: 360 } } = {}) {
  const gantry = new FakeGantry()
  await gantry.addCamera(fakeCamera('cam-1'))
  gantry.snapshotJpeg = await plainPicture('grey', 'jpeg', large)
  const picture = await plainPicture('#3c3c3c', 'jpeg', sent)
  let seq = 0
  const emit = (): void =>
    gantry.emit(fakeResult('cam-1', (seq += 1)), picture, { widthPx: sent.width, heightPx: sent.height })
  const timer = setInterval(emit, 200)
  onTestFinished(() => clearInterval(timer))
  const { url } = await serveFake({}, { gantry })
  return { gantry, url }
}

type Asked = { query: string; status: number; bytes: number }

/** What the page asks of snapshots. */
function askedOf(page: Page): Asked[] {
  const asked: Asked[] = []
  page.on('response', (response) => {
    const { pathname, search } = new URL(response.url())
    if (!pathname.endsWith('snapshot.jpg')) return
    const bytes = Number(response.headers()['content-length'] ?? 0)
    asked.push({ query: search, status: response.status(), bytes })
  })
  return asked
}

async function enlarge(page: Page): Promise<void> {
  await page.locator('[data-camera=cam-1] canvas[data-seq]').waitFor(patient)
  await page.getByRole('button', { name: /^Enlarge/ }).click()
  await page.getByRole('button', { name: /^Full size/ }).waitFor(patient)
}

const widthOf = (page: Page) =>
  page.locator('img.full-size').evaluate((image) => (image as HTMLImageElement).naturalWidth)
const note = (page: Page) => page.locator('.full-size-note')

describe.skipIf(skipsBrowser())('one camera that is looked at', { timeout: 120_000 }, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  it('is shown in its own resolution, taken anew as long as it is looked at, with what moves beside it', async () => {
    const { gantry, url } = await moving()
    const { page, misdeeds } = await openPage(browser, url)
    onTestFinished(() => page.context().close())
    const asked = askedOf(page)
    await page.locator('[data-camera=cam-1] canvas[data-seq]').waitFor(patient)
    // The wall is cheap.
    expect(asked).toEqual([])
    await enlarge(page)
    await expect.poll(() => widthOf(page), patient).toBe(1280)
    expect(await note(page).textContent()).toMatch(/^1280 × 720, of /)
    await page.locator('.live-beside canvas[data-seq]').waitFor(patient)

    // The same picture is not sent again, another one is.
    await expect.poll(() => asked.filter(({ status }) => status === 304).length, patient).toBeGreaterThan(0)
    const before = await page.locator('img.full-size').getAttribute('src')
    gantry.snapshotJpeg = await plainPicture('red', 'jpeg', large)
    await expect.poll(() => page.locator('img.full-size').getAttribute('src'), patient).not.toBe(before)
    const whole = asked.filter(({ bytes }) => bytes > 0)
    expect(whole.map(({ status }) => status)).toEqual([200, 200])

    // Without boxes, from the next one on.
    await page.keyboard.press('b')
    await expect.poll(() => asked.at(-1)?.query, patient).toBe('?overlay=0')
    await page.getByRole('button', { name: 'Close' }).click()
    const then = asked.length
    gantry.snapshotJpeg = await plainPicture('blue', 'jpeg', large)
    await page.getByRole('button', { name: /^Enlarge/ }).waitFor()
    expect(asked.length).toBeLessThanOrEqual(then + 1)
    expect(misdeeds).toEqual(clean)
  })

  it('is shown live where the person wants that, which is remembered', async () => {
    const { url } = await moving()
    const { page, misdeeds } = await openPage(browser, url)
    onTestFinished(() => page.context().close())
    const asked = askedOf(page)
    await enlarge(page)
    await page.locator('img.full-size').waitFor(patient)
    await page.keyboard.press('f')
    await page.locator('img.full-size').waitFor({ state: 'detached', ...patient })
    await page.locator('.live-beside').waitFor({ state: 'detached', ...patient })
    await page.reload()
    await enlarge(page)
    asked.length = 0
    const canvas = page.locator('.screen.large canvas')
    const shown = Number(await canvas.getAttribute('data-seq'))
    await expect
      .poll(async () => Number(await canvas.getAttribute('data-seq')), patient)
      .toBeGreaterThan(shown + 5)
    expect(asked).toEqual([])
    await page.getByRole('button', { name: /^Full size/ }).click()
    await expect.poll(() => widthOf(page), patient).toBe(1280)
    expect(misdeeds).toEqual(clean)
  })

  it('is shown live at first in a browser that is to save data', async () => {
    const { url } = await moving()
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
    onTestFinished(() => context.close())
    await context.addInitScript(() =>
      Object.defineProperty(navigator, 'connection', { value: { saveData: true } }),
    )
    const page = await context.newPage()
    const asked = askedOf(page)
    await page.goto(url)
    await enlarge(page)
    await page.locator('.screen.large canvas[data-seq]').waitFor(patient)
    expect(await page.getByRole('button', { name: /^Full size/ }).getAttribute('aria-pressed')).toBe('false')
    expect(asked).toEqual([])
  })

  it('is shown live where the model sees all that the camera sends', async () => {
    const { url } = await moving({ sent: large })
    const { page } = await openPage(browser, url)
    onTestFinished(() => page.context().close())
    const asked = askedOf(page)
    await enlarge(page)
    const canvas = page.locator('.screen.large canvas')
    const shown = Number(await canvas.getAttribute('data-seq'))
    await expect
      .poll(async () => Number(await canvas.getAttribute('data-seq')), patient)
      .toBeGreaterThan(shown + 5)
    expect(asked).toEqual([])
  })

  it('R153: is shown live, and says so, where its own resolution is not at hand, or is too far behind', async () => {
    const { gantry, url } = await moving()
    gantry.snapshotFacts = { picture: 'analysed' }
    const { page, misdeeds } = await openPage(browser, url)
    onTestFinished(() => page.context().close())
    await enlarge(page)
    await note(page).getByText('Live: no larger picture of this camera is at hand.').waitFor(patient)
    expect(await page.locator('img.full-size').count()).toBe(0)
    // It is asked again, ever more rarely.
    gantry.snapshotFacts = {}
    await expect.poll(() => widthOf(page), patient).toBe(1280)

    // A line that is too slow for it shows nothing old meanwhile.
    let open = (): void => undefined
    gantry.snapshotGate = new Promise((resolve) => (open = resolve))
    await note(page).getByText('take too long').waitFor(patient)
    expect(await page.locator('img.full-size').count()).toBe(0)
    open()
    await expect.poll(() => widthOf(page), patient).toBe(1280)

    // A key frame that is long past comes again and again.
    gantry.snapshotJpeg = await plainPicture('red', 'jpeg', large)
    gantry.snapshotFacts = { capturedAtMs: Date.now() - 60_000 }
    await note(page).getByText('too rarely').waitFor(patient)
    await page.locator('img.full-size').waitFor({ state: 'detached', ...patient })
    expect(misdeeds).toEqual(clean)
  })

  it('may be saved as a file, in its own resolution, with a name that tells what it is', async () => {
    const { gantry, url } = await moving()
    gantry.snapshotFacts = { capturedAtMs: Date.UTC(2026, 10, 28, 9, 30, 5, 120) }
    const { page, misdeeds } = await openPage(browser, url)
    onTestFinished(() => page.context().close())
    await enlarge(page)
    const download = page.waitForEvent('download', patient)
    await page.getByRole('button', { name: 'Save picture' }).click()
    const file = await download
    expect(file.suggestedFilename()).toBe('cam-1 2026-11-28T09-30-05.120Z.jpg')
    expect(await sharp(await readFile(await file.path())).metadata()).toMatchObject(large)
    expect(misdeeds).toEqual(clean)
  })
})
