import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { labelColor } from '../../src/vision/label-colors.js'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'

const nothing = { dialogs: [], violations: [], errors: [], foreign: [] }
/** Browser, decoders and detector share the cores of this machine. */
const patient = { timeout: 60_000 }
const perTest = 180_000

type Color = readonly [red: number, green: number, blue: number]

function rgb(hex: string): Color {
  const value = Number.parseInt(hex.slice(1), 16)
  return [value >> 16, (value >> 8) & 0xff, value & 0xff]
}

/** How many pixels of a canvas have a colour, a little blurring aside. */
function pixelsOf(page: Page, canvas: string, color: Color): Promise<number> {
  return page.locator(canvas).evaluate((element, wanted) => {
    const { width, height } = element as HTMLCanvasElement
    const data = (element as HTMLCanvasElement).getContext('2d')?.getImageData(0, 0, width, height).data
    let count = 0
    for (let at = 0; data !== undefined && at < data.length; at += 4)
      if (wanted.every((value, channel) => Math.abs((data[at + channel] ?? 0) - value) <= 12)) count += 1
    return count
  }, color)
}

/** Everything on a canvas, as a text that is another one when a pixel is. */
function contentOf(page: Page, canvas: string): Promise<string> {
  return page.locator(canvas).evaluate((element) => (element as HTMLCanvasElement).toDataURL())
}

/** Number of the frame a camera shows; 0 before its first. */
async function shownFrame(page: Page, id: string): Promise<number> {
  return Number((await page.locator(pictureOf(id)).getAttribute('data-seq')) ?? 0)
}

async function nextFrame(page: Page, id: string): Promise<void> {
  const before = await shownFrame(page, id)
  await expect.poll(() => shownFrame(page, id), patient).toBeGreaterThan(before)
}

const pictureOf = (id: string): string => `[data-camera="${id}"] canvas`
const plotOf = (name: string): string => `.trend:has(h3:text-is("${name}")) .plot canvas`

/** The figures beside the plots; those that are `–` are left out. */
async function figures(page: Page): Promise<Partial<Record<'p50' | 'p99' | 'fps', number>>> {
  const texts = await page.locator('.trend dd').allTextContents()
  const inMs = (text = ''): number => Number.parseFloat(text) * (text.endsWith(' s') ? 1_000 : 1)
  const read = { p50: inMs(texts[0]), p99: inMs(texts[1]), fps: inMs(texts[2]) }
  return Object.fromEntries(Object.entries(read).filter(([, value]) => !Number.isNaN(value)))
}

/** The colour of a line of the plots, as the style sheet has it now. */
function lineColor(page: Page, tone: string): Promise<Color> {
  return page
    .locator(`.trend .dot.${tone}`)
    .first()
    .evaluate((dot) => {
      const [red = 0, green = 0, blue = 0] =
        getComputedStyle(dot).backgroundColor.match(/\d+/g)?.map(Number) ?? []
      return [red, green, blue] as const
    })
}

describe.skipIf(skipsBrowser())('the page on a real service with real cameras', () => {
  let browser: Browser
  let rtsp: LoopingRtspServer
  let service: TestService

  beforeAll(async () => {
    browser = await launchBrowser()
    rtsp = await rtspCameras(3)
    const camera = (id: string, stream: string) => ({ id, url: rtsp.url(stream), sampleFps: 1 })
    service = await TestService.start({
      pipeline: { cameras: [camera('dock-1', '/cam1'), camera('dock-2', '/cam2')] },
    })
  }, 120_000)

  afterAll(async () => {
    await service?.[Symbol.asyncDispose]()
    await rtsp?.stop()
    await browser?.close()
  })

  it('shows moving pictures with boxes, and lists what is found', { timeout: perTest }, async () => {
    const { page, misdeeds, consoleErrors } = await openPage(browser, service.url)
    for (const id of ['dock-1', 'dock-2']) {
      await page.locator(`[data-camera="${id}"][data-state=live]`).waitFor(patient)
      await nextFrame(page, id)
      const before = await contentOf(page, pictureOf(id))
      await nextFrame(page, id)
      expect(await contentOf(page, pictureOf(id))).not.toBe(before)
    }
    await page.locator('.tile-seen').getByText('person').first().waitFor(patient)
    await expect
      .poll(() => pixelsOf(page, pictureOf('dock-1'), rgb(labelColor('person'))), patient)
      .toBeGreaterThan(100)
    await page.locator('.sighting').getByText('person').first().waitFor(patient)
    await page.locator('[data-service=ready]').waitFor()
    await page.locator('[data-stream=open]').waitFor()
    expect({ misdeeds, consoleErrors }).toEqual({ misdeeds: nothing, consoleErrors: [] })
    await page.context().close()
  })

  it('draws latency and throughput of the results that come', { timeout: perTest }, async () => {
    const { page, misdeeds, consoleErrors } = await openPage(browser, service.url)
    const [latencyColor, fpsColor] = [await lineColor(page, 'info'), await lineColor(page, 'ok')]
    const flowing = async (): Promise<boolean> => {
      const { p50 = 0, p99 = 0, fps = 0 } = await figures(page)
      return fps > 0 && p50 > 0 && p99 >= p50
    }
    await expect.poll(flowing, patient).toBe(true)
    // A line needs two points, and is longer with each that follows.
    const lengths = async (): Promise<number[]> => [
      await pixelsOf(page, plotOf('Latency'), latencyColor),
      await pixelsOf(page, plotOf('Throughput'), fpsColor),
    ]
    await expect.poll(async () => Math.min(...(await lengths())), patient).toBeGreaterThan(0)
    const before = await lengths()
    await expect
      .poll(async () => (await lengths()).every((length, i) => length > (before[i] ?? 0)), patient)
      .toBe(true)
    for (const id of ['dock-1', 'dock-2'])
      await page.getByRole('button', { name: `Switch off ${id}` }).click()
    await expect.poll(() => figures(page), patient).toEqual({ fps: 0 })
    for (const id of ['dock-1', 'dock-2']) await page.getByRole('button', { name: `Switch on ${id}` }).click()
    await expect.poll(flowing, patient).toBe(true)
    expect({ misdeeds, consoleErrors }).toEqual({ misdeeds: nothing, consoleErrors: [] })
    await page.context().close()
  })

  it(
    'shows the camera that is looked at in its own resolution, and no other',
    { timeout: perTest },
    async () => {
      const { page, misdeeds } = await openPage(browser, service.url)
      const asked: string[] = []
      page.on('request', (request) => {
        if (request.url().includes('snapshot.jpg')) asked.push(new URL(request.url()).pathname)
      })
      await nextFrame(page, 'dock-1')
      await nextFrame(page, 'dock-2')
      expect(asked).toEqual([])
      await page.getByRole('button', { name: /^Enlarge dock-1/ }).click()
      const picture = page.locator('img.full-size')
      const widthPx = () => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth)
      await expect.poll(widthPx, patient).toBe(1280)
      expect(await page.locator('.full-size-note').textContent()).toMatch(/^1280 × 720, of /)
      // Another key frame is another picture.
      const before = await picture.getAttribute('src')
      await expect.poll(() => picture.getAttribute('src'), patient).not.toBe(before)
      await page.locator('.live-beside canvas[data-seq]').waitFor(patient)
      expect(new Set(asked)).toEqual(new Set(['/api/v1/cameras/dock-1/snapshot.jpg']))
      expect(misdeeds).toEqual(nothing)
      await page.context().close()
    },
  )

  it('adds a camera that is soon live, and removes it', { timeout: perTest }, async () => {
    const { page, misdeeds, consoleErrors } = await openPage(browser, service.url)
    await page.locator('[data-camera=dock-1]').waitFor()
    await page.keyboard.press('a')
    const dialog = page.getByRole('dialog', { name: 'Add a camera' })
    await dialog.getByLabel('URL').fill(rtsp.url('/cam3'))
    await dialog.locator('[name=id]').fill('gate')
    await dialog.locator('[name=sampleFps]').fill('1')
    await dialog.getByRole('button', { name: 'Add camera' }).click()
    await page.locator('[data-camera=gate][data-state=live]').waitFor(patient)
    await nextFrame(page, 'gate')
    expect(await service.camera('gate')).toMatchObject({ persist: true, config: { sampleFps: 1 } })

    await page.getByRole('button', { name: 'Remove gate' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Remove', exact: true }).click()
    await page.locator('[data-camera=gate]').waitFor({ state: 'detached' })
    expect((await service.fetch('/api/v1/cameras/gate')).status).toBe(404)
    await nextFrame(page, 'dock-1')
    expect({ misdeeds, consoleErrors }).toEqual({ misdeeds: nothing, consoleErrors: [] })
    await page.context().close()
  })
})
