import { mkdirSync } from 'node:fs'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

const clean = { dialogs: [], violations: [], errors: [], foreign: [] }
const patient = { timeout: 60_000 }
const perTest = 180_000
/** A folder for pictures of the page, to be looked at. */
const shots = process.env['GANTRY_SHOTS']

type At = readonly [x: number, y: number]
type Region = Readonly<{ x: number; y: number; width: number; height: number }>

/** A place in the picture, by shares of it, in pixels of the page. */
async function placeOf(area: Locator, [x, y]: At): Promise<Readonly<{ x: number; y: number }>> {
  const box = (await area.boundingBox())!
  return { x: box.x + x * box.width, y: box.y + y * box.height }
}

async function dragMouse(
  page: Page,
  area: Locator,
  ...[first, ...rest]: readonly [At, ...At[]]
): Promise<void> {
  const at = await placeOf(area, first)
  await page.mouse.move(at.x, at.y)
  await page.mouse.down()
  for (const next of rest) {
    const to = await placeOf(area, next)
    await page.mouse.move(to.x, to.y, { steps: 4 })
  }
  await page.mouse.up()
}

/** A finger, as a phone has it. */
async function dragFinger(page: Page, area: Locator, from: At, to: At): Promise<void> {
  const device = await page.context().newCDPSession(page)
  const send = async (type: 'touchStart' | 'touchMove' | 'touchEnd', at?: At) => {
    const touchPoints = at === undefined ? [] : [await placeOf(area, at)]
    await device.send('Input.dispatchTouchEvent', { type, touchPoints })
  }
  await send('touchStart', from)
  for (const share of [0.25, 0.5, 0.75, 1])
    await send('touchMove', [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share])
  await send('touchEnd')
}

async function regionOf(form: Locator): Promise<Region> {
  const side = async (name: string) => Number(await form.locator(`[name="region.${name}"]`).inputValue())
  return { x: await side('x'), y: await side('y'), width: await side('width'), height: await side('height') }
}

async function isRegion(form: Locator, wanted: Region): Promise<void> {
  const off = async () => {
    const region = await regionOf(form)
    return Math.max(
      ...(['x', 'y', 'width', 'height'] as const).map((side) => Math.abs(region[side] - wanted[side])),
    )
  }
  await expect.poll(off, { timeout: 15_000, message: JSON.stringify(wanted) }).toBeLessThan(0.012)
}

async function looked(page: Page, name: string): Promise<void> {
  if (shots === undefined) return
  mkdirSync(shots, { recursive: true })
  await page.screenshot({ path: `${shots}/${name}.png` })
}

describe.skipIf(skipsBrowser())('a region drawn on the picture of a real camera', () => {
  let browser: Browser
  let rtsp: LoopingRtspServer
  let service: TestService

  beforeAll(async () => {
    browser = await launchBrowser()
    rtsp = await rtspCameras(2)
    service = await TestService.start({
      pipeline: { cameras: [{ id: 'dock', url: rtsp.url('/cam1'), sampleFps: 1 }] },
    })
  }, 120_000)

  afterAll(async () => {
    await service?.[Symbol.asyncDispose]()
    await rtsp?.stop()
    await browser?.close()
  })

  const opened = async (options: Parameters<typeof openPage>[2] = {}) => {
    const { page, misdeeds } = await openPage(browser, service.url, options)
    onTestFinished(() => page.context().close())
    await page.locator('[data-camera=dock]').first().waitFor(patient)
    return { page, misdeeds }
  }

  it(
    'by mouse, from any corner to any other, in the form of a camera that is tried and added',
    { timeout: perTest },
    async () => {
      const { page, misdeeds } = await opened()
      await page.keyboard.press('a')
      const form = page.getByRole('dialog', { name: 'Add a camera' })
      await form.getByLabel('URL').fill(rtsp.url('/cam2'))
      await form.locator('[name=id]').fill('gate')
      await form.getByRole('button', { name: 'Try it' }).click()
      await form.getByText('It works.').waitFor(patient)
      await form.getByText('1280 × 720').waitFor()
      await form.getByText('More settings').click()
      const area = form.locator('.region-area')
      await area.locator('img').scrollIntoViewIfNeeded()

      // From the upper left on, and from the lower right back; while nothing is chosen, too.
      await dragMouse(page, area, [0.2, 0.3], [0.6, 0.8])
      await isRegion(form, { x: 0.2, y: 0.3, width: 0.4, height: 0.5 })
      await form.getByRole('button', { name: 'Whole picture' }).click()
      await dragMouse(page, area, [0.7, 0.9], [0.3, 0.4])
      await isRegion(form, { x: 0.3, y: 0.4, width: 0.4, height: 0.5 })
      // Past the edge, and back again.
      await dragMouse(page, area, [0.2, 0.2], [1.3, 0.6], [0.5, 0.1])
      await isRegion(form, { x: 0.2, y: 0.1, width: 0.3, height: 0.1 })
      await dragMouse(page, area, [0.8, 0.6], [-0.2, 1.4])
      await isRegion(form, { x: 0, y: 0.6, width: 0.8, height: 0.4 })
      // Moved as a whole, no further than the edge; the corner alone.
      await dragMouse(page, area, [0.4, 0.8], [0.9, 0.5])
      await isRegion(form, { x: 0.2, y: 0.3, width: 0.8, height: 0.4 })
      await looked(page, 'drawn')
      // A click changes nothing, nor does one of another button.
      await dragMouse(page, area, [0.1, 0.1])
      const corner = await placeOf(area, [0.1, 0.1])
      await page.mouse.click(corner.x, corner.y, { button: 'right' })
      await page.mouse.move(corner.x + 90, corner.y + 50)
      await isRegion(form, { x: 0.2, y: 0.3, width: 0.8, height: 0.4 })

      await form.getByRole('button', { name: 'Add camera' }).click()
      await page.locator('[data-camera=gate][data-state=live]').waitFor(patient)
      const { region } = (await service.camera('gate')).config
      expect(region?.x).toBeCloseTo(0.2, 1)
      expect(region?.height).toBeCloseTo(0.4, 1)
      await page.keyboard.press('Escape')
      expect(misdeeds).toEqual(clean)
    },
  )

  it('by finger, on a phone, in the form of one that is there', { timeout: perTest }, async () => {
    const { page, misdeeds } = await opened({
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
      deviceScaleFactor: 2,
    })
    await page.locator('[data-camera="dock"]').first().tap()
    await page.getByRole('button', { name: 'Edit' }).tap()
    const form = page.locator('form.form')
    await form.getByRole('button', { name: 'Try it' }).tap()
    await form.getByText('It works.').waitFor(patient)
    await looked(page, 'phone-tried')
    const area = form.locator('.region-area')
    await area.scrollIntoViewIfNeeded()
    await dragFinger(page, area, [0.8, 0.7], [0.4, 0.2])
    await isRegion(form, { x: 0.4, y: 0.2, width: 0.4, height: 0.5 })
    await looked(page, 'phone-region')
    // Chromium takes a tap that follows a drag too soon for a part of that: then there is no click.
    await until(
      'the form is closed',
      async () => {
        if ((await form.count()) === 0) return true
        await form.getByRole('button', { name: 'Save' }).tap({ timeout: 2_000 })
        await form.waitFor({ state: 'detached', timeout: 10_000 })
        return true
      },
      60_000,
    )
    const { region } = (await service.camera('dock')).config
    expect(region?.width).toBeCloseTo(0.4, 1)

    // Tried again, the picture is the whole one, so that the region lies where it was drawn.
    await page.getByRole('button', { name: 'Edit' }).tap()
    await form.getByRole('button', { name: 'Try it' }).tap()
    await form.getByText('It works.').waitFor(patient)
    const [width, height] = await area.locator('img').evaluate((image) => {
      const { naturalWidth, naturalHeight } = image as HTMLImageElement
      return [naturalWidth, naturalHeight] as const
    })
    expect(width / height).toBeCloseTo(16 / 9, 1)
    expect(misdeeds).toEqual(clean)
  })
})
