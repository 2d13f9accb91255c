import { mkdirSync } from 'node:fs'
import sharp from 'sharp'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launchBrowser, openPage, skipsBrowser, type Misdeeds } from '../support/browser.js'
import { fakeCamera, fakePreview, FakeGantry } from '../support/fake-gantry.js'
import { serveFake } from '../support/serve-fake.js'

const clean: Misdeeds = { dialogs: [], violations: [], errors: [], foreign: [] }
const evil = '<img src=x onerror=alert(1)>"><script>alert(2)</script>'
/** A folder for pictures of the page, to be looked at. */
const shots = process.env['GANTRY_SHOTS']

async function withCamera(): Promise<FakeGantry> {
  const gantry = new FakeGantry()
  const login = { username: 'viewer', password: 'canary-password' }
  await gantry.addCamera(fakeCamera('dock', { name: evil, persist: true, ...login }))
  const picture = await sharp({ create: { width: 1_280, height: 720, channels: 3, background: '#46586b' } })
    .jpeg()
    .toBuffer()
  gantry.preview = { ...fakePreview(picture), warnings: [evil] }
  return gantry
}

describe.skipIf(skipsBrowser())('a camera edited on the page', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  const opened = async (viewport: { width: number; height: number }) => {
    const { url, gantry } = await serveFake({}, { gantry: await withCamera() })
    const { page, misdeeds } = await openPage(browser, url, { viewport })
    await page.locator('[data-camera="dock"]').first().click()
    await page.getByRole('button', { name: 'Edit' }).click()
    const form = page.locator('form.form')
    await form.waitFor()
    const shot = async (name: string) => {
      if (shots === undefined) return
      mkdirSync(shots, { recursive: true })
      await page.screenshot({ path: `${shots}/${name}-${viewport.width}.png` })
    }
    return { page, form, gantry, misdeeds, shot }
  }

  it.each([
    { width: 1_440, height: 900 },
    { width: 390, height: 844 },
  ])('sends only what was changed, of names that are hostile too ($width px)', async (viewport) => {
    const { page, form, gantry, misdeeds, shot } = await opened(viewport)
    expect(await form.locator('[name="password"]').inputValue()).toBe('')
    expect(await form.locator('[name="name"]').inputValue()).toBe(evil)
    await form.getByRole('button', { name: 'Try it' }).click()
    await form.getByText('It works.').waitFor()
    expect(gantry.previewed.at(-1)).toEqual({ id: 'dock' })
    await form.locator('[name="sampleFps"]').fill('2')
    await form.getByLabel(/^Corner upper left/).focus()
    for (let press = 0; press < 5; press += 1) await page.keyboard.press('Shift+ArrowRight')
    await expect.poll(() => form.locator('[name="region.x"]').inputValue()).toBe('0.25')
    await shot('edit')
    await form.locator('.region-picker').scrollIntoViewIfNeeded()
    await shot('region')
    await form.getByRole('button', { name: 'Save' }).click()
    await expect.poll(() => gantry.patched.length).toBe(1)
    expect(gantry.patched[0]).toEqual({ sampleFps: 2, region: { x: 0.25, y: 0, width: 0.75, height: 1 } })
    await form.waitFor({ state: 'detached' })
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('S34: never overwrites what somebody else changed meanwhile unseen', async () => {
    const { page, form, gantry } = await opened({ width: 1_440, height: 900 })
    await form.locator('[name="sampleFps"]').fill('2')
    await gantry.patchCamera('dock', { transport: 'udp' })
    await form.getByRole('button', { name: 'Save' }).click()
    await form.getByText('The camera was changed meanwhile.').waitFor()
    expect(gantry.patched).toHaveLength(1)
    expect(await form.locator('[name="transport"]').inputValue()).toBe('udp')
    expect(await form.locator('[name="sampleFps"]').inputValue()).toBe('2')
    await form.getByRole('button', { name: 'Save' }).click()
    await expect.poll(() => gantry.patched.length).toBe(2)
    expect(gantry.patched[1]).toEqual({ sampleFps: 2 })
    await page.context().close()
  })

  it('tells of every field that is wrong, beside it', async () => {
    const { page, form, gantry } = await opened({ width: 1_440, height: 900 })
    await form.locator('[name="sampleFps"]').fill('many')
    await form.locator('[name="maxWidthPx"]').fill('3')
    await form.getByRole('button', { name: 'Save' }).click()
    await expect.poll(() => form.locator('[aria-invalid="true"]').count()).toBe(2)
    expect(gantry.patched).toEqual([])
    await page.context().close()
  })

  it('takes a login away', async () => {
    const { page, form, gantry } = await opened({ width: 1_440, height: 900 })
    await form.getByLabel('Take user name and password away').check()
    await form.getByRole('button', { name: 'Save' }).click()
    await expect.poll(() => gantry.patched).toEqual([{ username: null, password: null }])
    await page.context().close()
  })
})
