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
