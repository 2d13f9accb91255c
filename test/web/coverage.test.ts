import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { fakeCamera, FakeGantry } from '../support/fake-gantry.js'
import { serveFake } from '../support/serve-fake.js'

describe.skipIf(skipsBrowser())('the timeline of a camera', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  it('R134: says in words and by keyboard what its colours say, for an hour and a day', async () => {
    const gantry = new FakeGantry()
    await gantry.addCamera(fakeCamera('dock-1'))
    const nowMs = Date.now()
    const at = (minutes: number) => nowMs - minutes * 60_000
    gantry.spans = [
      { cameraId: 'dock-1', fromMs: at(600), toMs: at(45), cause: null },
      { cameraId: 'dock-1', fromMs: at(45), toMs: at(30), cause: 'covered' },
      { cameraId: 'dock-1', fromMs: at(30), toMs: at(-5), cause: null },
    ]
    const { url } = await serveFake({}, { gantry })
    const { page, misdeeds } = await openPage(browser, url)
    onTestFinished(() => page.context().close())
    await page.getByRole('button', { name: /Enlarge dock-1/ }).click()
    const coverage = page.getByRole('region', { name: 'Coverage' })
    await coverage.getByRole('img', { name: /last hour: watched 75 %; blind: covered 15 min/ }).waitFor()
    await coverage.getByRole('button', { name: 'last day' }).focus()
    await page.keyboard.press('Enter')
    await coverage.getByRole('img', { name: /last day: watched 97.5 %/ }).waitFor()
    await coverage.getByText('1 time blind').focus()
    await page.keyboard.press('Enter')
    expect(misdeeds).toEqual({ dialogs: [], violations: [], errors: [], foreign: [] })
    expect(await coverage.getByRole('listitem').allInnerTexts()).toEqual([
      expect.stringMatching(/covered, .*for 15 min/),
    ])
  })
})

describe.skipIf(skipsBrowser())('coverage on the wall', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  it('R142: says how much of the last hour was watched, and marks the cameras whose picture shows nothing', async () => {
    const gantry = new FakeGantry()
    const nowMs = Date.now()
    const at = (minutes: number) => nowMs - minutes * 60_000
    const causes = { sound: null, gone: 'covered', swung: 'moved', off: 'dark', soft: 'blurred' } as const
    for (const [id, cause] of Object.entries(causes)) {
      await gantry.addCamera(fakeCamera(id))
      gantry.spans.push(
        { cameraId: id, fromMs: at(600), toMs: at(15), cause: null },
        { cameraId: id, fromMs: at(15), toMs: at(-5), cause },
      )
    }
    // Its state says more already than what its last picture showed.
    gantry.setStatus('off', { state: 'failed', reason: 'no route to it' })
    const { url } = await serveFake({}, { gantry })
    const { page, misdeeds } = await openPage(browser, url)
    onTestFinished(() => page.context().close())

    const badges = (id: string) => page.locator(`[data-camera=${id}] .badge`).allInnerTexts()
    await page.locator('[data-camera=gone] [data-badge=covered]').waitFor()
    expect(await badges('gone')).toEqual(['covered', 'Live'])
    expect(await badges('swung')).toEqual(['moved', 'Live'])
    expect(await badges('soft')).toEqual(['blurred', 'Live'])
    expect(await badges('sound')).toEqual(['Live'])
    expect(await badges('off')).toEqual(['Failed'])
    await page.getByRole('button', { name: 'Enlarge gone, live, covered, 5.0 frames per second' }).waitFor()
    // The hour goes on while the test runs.
    expect(await page.locator('[data-badge=covered]').getAttribute('title')).toMatch(
      /^Something lies over the lens: blind for 1[5-7] min. Watched in the last hour: 7[2-5](.\d)? %$/,
    )
    // Four of five were blind for a quarter of it.
    expect(await page.locator('.figures').innerText()).toMatch(/watched, 1 h\s+(80|7[7-9](.\d)?) %/)

    for (const width of [910, 1_024, 1_085]) {
      await page.setViewportSize({ width, height: 800 })
      const wide = await page.evaluate(() => {
        const { right } = document.querySelector('.header .actions')!.getBoundingClientRect()
        return Math.max(document.documentElement.scrollWidth, right) - window.innerWidth
      })
      expect(wide, `pixels too wide at ${width}`).toBeLessThanOrEqual(0)
    }

    gantry.spans.push({ cameraId: 'gone', fromMs: at(0), toMs: at(-5), cause: null })
    await page.locator('[data-badge=covered]').waitFor({ state: 'detached', timeout: 30_000 })
    // Nobody is told what is not known any more.
    gantry.coverage = () => Promise.reject(new Error('the store does not answer'))
    await page.locator('[data-badge=moved]').waitFor({ state: 'detached', timeout: 30_000 })
    expect(await page.locator('.figures').innerText()).toMatch(/watched, 1 h\s+–/)
    expect({ ...misdeeds, errors: [] }).toEqual({ dialogs: [], violations: [], errors: [], foreign: [] })
  })
})
