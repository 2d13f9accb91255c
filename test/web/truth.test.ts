import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { fakeCamera, fakeResult, FakeGantry } from '../support/fake-gantry.js'
import { serveFake } from '../support/serve-fake.js'
import { TcpProxy } from '../support/tcp-proxy.js'
import { plainPicture } from '../support/still-pictures.js'

/** Browser and service share the cores with other tests. */
const patient = { timeout: 45_000 }
const perTest = 120_000
const isStream = (head: string): boolean => head.includes('/api/v1/stream')

/** A service whose cameras send pictures all the time, until the test ends or says so. */
async function flowing(cameras = 1) {
  const gantry = new FakeGantry()
  for (let i = 1; i <= cameras; i += 1) await gantry.addCamera(fakeCamera(`cam-${i}`))
  const { url } = await serveFake({}, { gantry })
  const picture = await plainPicture('#3c3c3c', 'jpeg', { width: 640, height: 360 })
  const quiet = new Set<string>()
  let seq = 0
  const timer = setInterval(() => {
    seq += 1
    const detections = [{ label: 'no_vest', score: 0.9, boxPx: { x1: 320, y1: 180, x2: 640, y2: 540 } }]
    for (const { id } of gantry.cameras())
      if (!quiet.has(id)) gantry.emit(fakeResult(id, seq, { detections }), picture)
  }, 200)
  onTestFinished(() => clearInterval(timer))
  return { gantry, url, quiet }
}

async function throughLine(url: string): Promise<TcpProxy> {
  const line = await TcpProxy.start(Number(new URL(url).port))
  onTestFinished(() => line.stop())
  return line
}

const tile = (id: string, state: string): string => `[data-camera="${id}"][data-state="${state}"]`
const seqOf = async (page: Page, id = 'cam-1'): Promise<number> =>
  Number((await page.locator(`[data-camera="${id}"] canvas`).getAttribute('data-seq')) ?? 0)

async function moves(page: Page, id = 'cam-1'): Promise<void> {
  const before = await seqOf(page, id)
  await expect.poll(() => seqOf(page, id), patient).toBeGreaterThan(before)
}

describe.skipIf(skipsBrowser())('the page tells the truth', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  it(
    'R96: says that a stream died without a word, opens it anew and resumes',
    { timeout: perTest },
    async () => {
      const { gantry, url } = await flowing()
      const line = await throughLine(url)
      const { page, misdeeds } = await openPage(browser, `http://127.0.0.1:${line.port}`)
      await page.locator(tile('cam-1', 'live')).waitFor(patient)
      await moves(page)
      expect(line.lose(isStream, true)).toBe(2)
      await page.locator(tile('cam-1', 'stale')).waitFor(patient)
      await page
        .locator('.notice.stale')
        .getByText(/^Picture of \d+ s ago$/)
        .waitFor()
      await page.locator('[data-badge=stale]').waitFor()
      await page.locator('.banner').getByText('The live stream of').waitFor(patient)
      await page.locator('[data-stream]:not([data-stream=open])').waitFor(patient)
      // Requests go on, so the service itself is well.
      expect(await page.locator('[data-service]').getAttribute('data-service')).toBe('ready')

      line.lose(() => false)
      await page.locator(tile('cam-1', 'live')).waitFor(patient)
      await moves(page)
      await expect.poll(() => page.locator('.banner').count(), patient).toBe(0)
      const resumed = gantry.stream.subscriptions.filter(({ frames }) => !frames)
      expect(resumed.some(({ resumeAfter }) => resumeAfter?.startsWith('fake-'))).toBe(true)
      expect(misdeeds.errors).toEqual([])
      await page.context().close()
    },
  )

  it('R96: notices it by itself where only the open streams were lost', { timeout: perTest }, async () => {
    const { url } = await flowing()
    const line = await throughLine(url)
    const { page } = await openPage(browser, `http://127.0.0.1:${line.port}`)
    await moves(page)
    expect(line.lose(isStream)).toBe(2)
    const before = await seqOf(page)
    await expect.poll(() => seqOf(page), patient).toBeGreaterThan(before + 5)
    await page.locator(tile('cam-1', 'live')).waitFor(patient)
    await page.context().close()
  })

  it('R98: says so when requests are lost while the streams go on', { timeout: perTest }, async () => {
    const { url } = await flowing()
    const line = await throughLine(url)
    const { page } = await openPage(browser, `http://127.0.0.1:${line.port}`)
    await moves(page)
    line.lose((head) => !isStream(head), true)
    await page.locator('.banner').getByText('pictures and detections still come').waitFor(patient)
    await moves(page)
    await page.locator(tile('cam-1', 'live')).waitFor(patient)
    await page.context().close()
  })

  it('R98: marks the pictures of the one camera whose pictures stop', { timeout: perTest }, async () => {
    const { url, quiet } = await flowing(2)
    const { page } = await openPage(browser, url)
    for (const id of ['cam-1', 'cam-2']) await moves(page, id)
    quiet.add('cam-2')
    await page.locator(tile('cam-2', 'stale')).waitFor(patient)
    await page.locator(tile('cam-1', 'live')).waitFor(patient)
    expect(await page.locator('.banner').count()).toBe(0)
    await page.locator('[data-camera=cam-2] .tile-open').click()
    await page.locator('dialog .notice.stale').waitFor()
    quiet.clear()
    await page.locator('dialog .notice.stale').waitFor({ state: 'detached', ...patient })
    await page.context().close()
  })

  it(
    'R97: tells ages by the clock of the service, whatever the browser says',
    { timeout: perTest },
    async () => {
      const { url, gantry } = await flowing()
      gantry.setStatus('cam-1', { sinceMs: Date.now() - 300_000 })
      for (const offMs of [-600_000, 600_000]) {
        const context = await browser.newContext({ timezoneId: 'Asia/Kathmandu' })
        await context.addInitScript((off) => {
          const Real = Date
          const now = Real.now.bind(Real)
          globalThis.Date = class extends Real {
            constructor(...given: []) {
              if (given.length > 0) super(...given)
              else super(now() + off)
            }
            static override now(): number {
              return now() + off
            }
          } as DateConstructor
        }, offMs)
        const page = await context.newPage()
        await page.goto(url)
        await moves(page)
        await page.locator(tile('cam-1', 'live')).waitFor()
        await page
          .locator('.zone')
          .getByText(/Asia\/Kath?mandu, GMT\+5:45/)
          .waitFor()
        const newest = (await page.locator('.sighting time').first().getAttribute('datetime')) ?? ''
        expect(Math.abs(Date.parse(newest) - Date.now())).toBeLessThan(120_000)
        // The plot runs to now: with another clock nothing would be drawn.
        await expect.poll(() => page.locator('.trend dd').last().textContent(), patient).toMatch(/^\d+\.\d$/)
        await page.locator('[data-camera=cam-1] .tile-open').click()
        await page
          .locator('dialog .facts')
          .getByText(/for [56] min, since/)
          .waitFor()
        await context.close()
      }
    },
  )

  it(
    'R100: switches boxes and names off by button and key, and remembers it',
    { timeout: perTest },
    async () => {
      const { url } = await flowing()
      const { page } = await openPage(browser, url)
      await moves(page)
      const orange = (): Promise<number> =>
        page.locator('[data-camera=cam-1] canvas').evaluate((element) => {
          const canvas = element as HTMLCanvasElement
          const data = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? []
          let count = 0
          for (let at = 0; at < data.length; at += 4)
            if (data[at]! > 220 && data[at + 1]! < 170 && data[at + 2]! < 130) count += 1
          return count
        })
      const all = await orange()
      expect(all).toBeGreaterThan(100)
      await page.locator('.tile-seen').getByText('1 no vest').waitFor()
      await page.keyboard.press('n')
      await expect.poll(orange, patient).toBeLessThan(all)
      expect(await orange()).toBeGreaterThan(100)
      expect(await page.locator('.tile-seen').count()).toBe(0)
      await page.getByRole('button', { name: 'Boxes' }).click()
      await expect.poll(orange, patient).toBe(0)
      await page.reload()
      await moves(page)
      expect(await orange()).toBe(0)
      await page.locator('.tile-open').click()
      await page.locator('dialog').getByRole('button', { name: 'Boxes', pressed: false }).waitFor()
      await page.keyboard.press('b')
      await page.locator('dialog').getByRole('button', { name: 'Boxes', pressed: true }).waitFor()
      await page.context().close()
    },
  )

  it('R100: goes past cameras and detections in a few steps of Tab', { timeout: perTest }, async () => {
    const { url } = await flowing(24)
    const { page } = await openPage(browser, url)
    await expect.poll(() => page.locator('.sighting').count(), patient).toBeGreaterThanOrEqual(24)
    const stops = await page.evaluate(
      () =>
        [...document.querySelectorAll<HTMLElement>('a[href],button,input,[tabindex]')].filter(
          (e) => e.tabIndex >= 0,
        ).length,
    )
    expect(stops).toBeLessThanOrEqual(20)
    const list = page.locator('.sighting-list')
    await list.locator('button[tabindex="0"]').focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowRight')
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('1 no vest')
    await page.keyboard.press('End')
    await page.keyboard.press('Tab')
    expect(await list.evaluate((element) => element.contains(document.activeElement))).toBe(false)
    await page.context().close()
  })
})
