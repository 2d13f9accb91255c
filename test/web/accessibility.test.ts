import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { blindCauses, type CoverageSpan } from '../../src/vision/coverage.js'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { fakeCamera, fakeGpu, fakeResult, FakeGantry } from '../support/fake-gantry.js'
import { fakeDown, fakeModel, fakeModelList, fakeModelServer, fakeVersion } from '../support/fake-models.js'
import { serveFake } from '../support/serve-fake.js'
import { plainPicture } from '../support/still-pictures.js'

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
/** A folder to keep pictures of the pages in, for people to look at. */
const shots = process.env['GANTRY_PAGE_SHOTS']

const screens = {
  phone: { width: 390, height: 844 },
  tablet: { width: 820, height: 1180 },
  desktop: { width: 1440, height: 900 },
} as const

type Case = readonly [
  screen: keyof typeof screens,
  colorScheme: 'light' | 'dark',
  cameras: number,
  open: Open,
]
type Open = 'page' | 'detail' | 'add' | 'help' | 'remove'

/** Each kind of screen, of colours, of number and of window, without each pair of them. */
const cases: readonly Case[] = [
  ['phone', 'light', 0, 'page'],
  ['phone', 'dark', 1, 'detail'],
  ['phone', 'light', 16, 'page'],
  ['phone', 'dark', 64, 'page'],
  ['phone', 'light', 1, 'add'],
  ['tablet', 'dark', 0, 'add'],
  ['tablet', 'light', 1, 'page'],
  ['tablet', 'dark', 16, 'page'],
  ['tablet', 'light', 16, 'detail'],
  ['desktop', 'dark', 0, 'page'],
  ['desktop', 'dark', 1, 'page'],
  ['desktop', 'light', 16, 'page'],
  ['desktop', 'dark', 16, 'help'],
  ['desktop', 'light', 16, 'remove'],
  ['desktop', 'light', 64, 'page'],
]

const reason =
  'connection to 192.0.2.10:554 was refused: nothing listens there, or a firewall is between; is the camera on?'

/** The last hour of each camera, with every cause in it. */
function spansOf(cameras: number): CoverageSpan[] {
  const nowMs = Date.now()
  return Array.from({ length: cameras }, (_, index) =>
    blindCauses.flatMap((cause, nth) => {
      const fromMs = nowMs - 3_600_000 + nth * 300_000
      const cameraId = `cam-${index + 1}`
      return [
        { cameraId, fromMs, toMs: fromMs + 240_000, cause: null },
        { cameraId, fromMs: fromMs + 240_000, toMs: fromMs + 300_000, cause },
      ]
    }),
  ).flat()
}

/** Cameras in every state, with names as long as people give, and things amiss. */
async function busyService(cameras: number): Promise<FakeGantry> {
  const gantry = new FakeGantry()
  for (let i = 1; i <= cameras; i += 1) {
    const name = i % 5 === 0 ? `Loading dock ${i}, north side, by the old weighbridge` : undefined
    await gantry.addCamera(fakeCamera(`cam-${i}`, name === undefined ? {} : { name }))
    if (i % 7 === 2) gantry.setStatus(`cam-${i}`, { state: 'backoff', reason, retryInMs: 8_000 })
    if (i % 7 === 3) gantry.setStatus(`cam-${i}`, { state: 'failed', reason })
    if (i % 7 === 4) gantry.setStatus(`cam-${i}`, { state: 'stalled', reason: 'no picture for 10 s' })
    if (i % 7 === 5) gantry.setStatus(`cam-${i}`, { state: 'disabled', reason: 'switched off' })
    if (i % 7 === 6) gantry.setStats(`cam-${i}`, { frozen: true })
  }
  gantry.spans = spansOf(cameras)
  if (cameras > 1) {
    gantry.graphicsCards = [fakeGpu()]
    gantry.sinks = [
      {
        name: 'kafka',
        state: 'down',
        reason: 'no broker answers',
        queued: 12,
        delivered: 9,
        dropped: 0,
        filtered: 0,
        rejected: {},
      },
    ]
  }
  return gantry
}

/** Pictures of white, on which what lies over them is hardest to read. */
async function showPictures(page: Page, gantry: FakeGantry): Promise<void> {
  const white = await plainPicture('#ffffff', 'jpeg', { width: 640, height: 360 })
  const labels = ['no_vest', 'helmet', 'person', 'forklift']
  const detections = labels.map((label, i) => ({
    label,
    score: 0.9,
    boxPx: { x1: 100 + i * 280, y1: 260, x2: 300 + i * 280, y2: 640 },
  }))
  let seq = 0
  const timer = setInterval(() => {
    seq += 1
    for (const { id, status } of gantry.cameras())
      if (status.state === 'live') gantry.emit(fakeResult(id, seq, { detections }), white)
  }, 500)
  onTestFinished(() => clearInterval(timer))
  await page.locator('canvas[data-seq]').first().waitFor({ timeout: 30_000 })
}

async function openWindow(page: Page, open: Open): Promise<void> {
  if (open === 'page') return
  if (open === 'add' || open === 'help') await page.keyboard.press(open === 'add' ? 'a' : '?')
  else {
    await page.locator('.tile-open').first().focus()
    await page.keyboard.press(open === 'detail' ? 'Enter' : 'Delete')
  }
  await page.locator('dialog[open]').waitFor()
}

/** What axe finds wrong, a line for each rule with its elements. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(await readFile(axePath, 'utf8'))
  return page.evaluate(async () => {
    type Found = {
      passes: unknown[]
      violations: { id: string; nodes: { html: string; failureSummary: string }[] }[]
    }
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<Found> } }
    const found = await axe.run({ resultTypes: ['violations', 'passes'] })
    if (found.passes.length < 10) return ['axe looked at next to nothing']
    return found.violations.flatMap(({ id, nodes }) =>
      nodes.slice(0, 4).map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
    )
  })
}

/** Texts over pictures, which axe leaves out, with their contrast at worst: over white, and over black. */
function contrastOverPictures(page: Page): Promise<[string, number][]> {
  return page.evaluate(() => {
    const parse = (color: string): number[] => (color.match(/[\d.]+/g) ?? []).map(Number)
    const luminance = (rgb: number[]): number => {
      const [r = 0, g = 0, b = 0] = rgb.map((value) => {
        const share = value / 255
        return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
      })
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    const contrast = (a: number, b: number): number => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    return [
      ...document.querySelectorAll<HTMLElement>('.screen :is(.tile-name, .badge, .chip, .notice.stale)'),
    ].map((element) => {
      const { color, backgroundColor } = getComputedStyle(element)
      const [r = 0, g = 0, b = 0, alpha = 1] = parse(backgroundColor)
      const worst = [0, 255].map((under) => {
        const behind = [r, g, b].map((value) => value * alpha + under * (1 - alpha))
        return contrast(luminance(parse(color).slice(0, 3)), luminance(behind))
      })
      return [`${element.className} ${element.textContent}`, Math.min(...worst)] as [string, number]
    })
  })
}

describe.skipIf(skipsBrowser())('the page for everybody', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  it.each(cases)(
    'R100: on a %s, %s, with %i cameras, %s',
    { timeout: 60_000 },
    async (screen, colorScheme, cameras, open) => {
      const gantry = await busyService(cameras)
      const { url } = await serveFake({}, { gantry })
      const { page } = await openPage(browser, url, {
        viewport: screens[screen],
        colorScheme,
        reducedMotion: 'reduce',
      })
      onTestFinished(() => page.context().close())
      await page
        .locator(cameras === 0 ? '.empty' : '.tile')
        .first()
        .waitFor({ timeout: 30_000 })
      if (cameras > 0) await showPictures(page, gantry)
      await openWindow(page, open)
      if (shots !== undefined)
        await page.screenshot({
          path: `${shots}/${screen}-${colorScheme}-${cameras}-${open}.png`,
          fullPage: open === 'page',
        })

      expect(await violations(page)).toEqual([])
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
      expect(wide, 'pixels to scroll sideways').toBeLessThanOrEqual(0)
      expect((await contrastOverPictures(page)).filter(([, ratio]) => ratio < 4.5)).toEqual([])
    },
  )

  it.each(
    (['phone', 'tablet', 'desktop'] as const).flatMap((screen) =>
      (['light', 'dark'] as const).map((colorScheme) => [screen, colorScheme] as const),
    ),
  )('R100: on a %s, %s, with the models of /v2', { timeout: 120_000 }, async (screen, colorScheme) => {
    const gantry = new FakeGantry()
    gantry.modelServer = fakeModelServer
    gantry.modelList = fakeModelList([
      fakeModel('ppe_detect'),
      fakeModel('a_name_that_is_as_long_as_people_give_them_in_a_repository_of_many_teams_2026_11_28'),
      fakeModel('broken', {
        versions: [
          fakeVersion({ version: '2' }),
          fakeDown('3', 'UNAVAILABLE', 'model.onnx: the graph has an operator that is not known here'),
        ],
      }),
    ])
    const { url } = await serveFake({}, { gantry })
    const viewport = screens[screen]
    const { page } = await openPage(browser, `${url}/#/models`, {
      viewport,
      colorScheme,
      reducedMotion: 'reduce',
    })
    onTestFinished(() => page.context().close())
    for (const open of ['models', 'model'] as const) {
      if (open === 'model') await page.goto(`${url}/#/models/broken`)
      const shown = open === 'model' ? '[data-model-detail]' : 'tr[data-model=broken]'
      await page.locator(shown).waitFor({ timeout: 30_000 })
      if (shots !== undefined)
        await page.screenshot({ path: `${shots}/${screen}-${colorScheme}-${open}.png`, fullPage: true })
      expect(await violations(page), open).toEqual([])
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
      expect(wide, 'pixels to scroll sideways').toBeLessThanOrEqual(0)
    }
  })

  it('R100: shows the reasons of 16 cameras to their end', { timeout: 60_000 }, async () => {
    const gantry = await busyService(16)
    const { url } = await serveFake({}, { gantry })
    const { page } = await openPage(browser, url)
    onTestFinished(() => page.context().close())
    const reasons = page.locator('.notice p:not(.notice-next)')
    await reasons.first().waitFor({ timeout: 30_000 })
    const cut = await reasons.evaluateAll((all) =>
      all
        .filter((element) => {
          const { top, bottom } = element.getBoundingClientRect()
          const screen = element.closest('.screen')!.getBoundingClientRect()
          return element.scrollHeight > element.clientHeight + 1 || top < screen.top || bottom > screen.bottom
        })
        .map((element) => element.textContent),
    )
    expect(cut).toEqual([])
  })
})
