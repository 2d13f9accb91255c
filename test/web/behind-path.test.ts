import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { fakeCamera, fakeResult, FakeGantry } from '../support/fake-gantry.js'
import { fakeModel, fakeModelList, fakeModelServer } from '../support/fake-models.js'
import { serveFake } from '../support/serve-fake.js'
import { plainPicture } from '../support/still-pictures.js'
import { underPath } from '../support/under-path.js'

describe.skipIf(skipsBrowser())('the page under a path of a reverse proxy', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  it(
    'shows cameras that move and models, and asks nothing beside its path',
    { timeout: 120_000 },
    async () => {
      const gantry = new FakeGantry()
      await gantry.addCamera(fakeCamera('dock'))
      gantry.modelServer = fakeModelServer
      gantry.modelList = fakeModelList([fakeModel('ppe_detect')])
      const { url, astray } = await underPath((await serveFake({}, { gantry })).url)
      const picture = await plainPicture('#3c3c3c', 'jpeg', { width: 640, height: 360 })
      let seq = 0
      const timer = setInterval(() => gantry.emit(fakeResult('dock', (seq += 1)), picture), 200)
      onTestFinished(() => clearInterval(timer))
      const { page, misdeeds } = await openPage(browser, url)
      onTestFinished(() => page.context().close())
      await page.locator('[data-camera=dock] canvas[data-seq]').waitFor({ timeout: 30_000 })
      await page.locator('[data-stream=open]').waitFor({ timeout: 30_000 })
      await page.getByRole('link', { name: 'Models', exact: true }).click()
      await page.locator('tr[data-model=ppe_detect]').waitFor({ timeout: 30_000 })
      expect(new URL(page.url()).pathname).toBe('/gantry/')
      await page.getByRole('link', { name: 'ppe_detect' }).click()
      await page
        .locator('[data-model-detail]')
        .getByText(`${url}v2/models/ppe_detect`)
        .first()
        .waitFor({ timeout: 30_000 })
      await page.getByRole('button', { name: 'Unload' }).waitFor()
      await page.reload()
      await page.locator('[data-model-detail]').waitFor({ timeout: 30_000 })
      expect(astray).toEqual([])
      expect(misdeeds).toEqual({ dialogs: [], violations: [], errors: [], foreign: [] })
    },
  )
})
