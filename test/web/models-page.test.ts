import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ModelsView } from '../../src/api/gantry.js'
import { launchBrowser, openPage, skipsBrowser, type Misdeeds } from '../support/browser.js'
import { fakeCamera, FakeGantry } from '../support/fake-gantry.js'
import {
  fakeDown,
  fakeModel,
  fakeModelList,
  fakeModelServer,
  fakeVersion,
  fakeWork,
} from '../support/fake-models.js'
import { serveFake } from '../support/serve-fake.js'

const clean: Misdeeds = { dialogs: [], violations: [], errors: [], foreign: [] }
const patient = { timeout: 30_000 }
const evil = '<img src=x onerror=alert(1)>"><script>alert(2)</script>'
const phone = { viewport: { width: 390, height: 844 } }

function gantryWith(list: ModelsView): FakeGantry {
  const gantry = new FakeGantry()
  gantry.modelServer = fakeModelServer
  gantry.modelList = list
  return gantry
}

const row = (page: Page, name: string) => page.locator(`tr[data-model=${JSON.stringify(name)}]`)
const detail = (page: Page) => page.locator('[data-model-detail]')

/** Whether nothing of the page is wider than the screen. */
function fits(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth)
}

let browser: Browser

describe.skipIf(skipsBrowser())('the page of the models', { timeout: 120_000 }, () => {
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  it('is a page of its own: linked, in the history, and found by its address', async () => {
    const gantry = gantryWith(fakeModelList([fakeModel('ppe_detect'), fakeModel('other')]))
    const { url } = await serveFake({}, { gantry })
    const { page, misdeeds } = await openPage(browser, url)
    await page.getByText('No cameras yet').waitFor()
    await page.getByRole('link', { name: 'Models', exact: true }).click()
    await row(page, 'ppe_detect').waitFor()
    expect(await page.title()).toBe('Models · Gantry')
    expect(await page.locator('[aria-current=page]').textContent()).toBe('Models')
    await page.getByRole('link', { name: 'ppe_detect' }).click()
    await detail(page).getByText('Ask it').waitFor()
    expect(new URL(page.url()).hash).toBe('#/models/ppe_detect')
    await page.goBack()
    await detail(page).waitFor({ state: 'detached' })
    await page.goBack()
    await page.getByText('No cameras yet').waitFor()
    await page.keyboard.press('m')
    await row(page, 'other').waitFor()
    await page.keyboard.press('c')
    await page.getByText('No cameras yet').waitFor()
    expect(misdeeds).toEqual(clean)

    const { page: deep } = await openPage(browser, `${url}/#/models/other`)
    await deep.locator('[data-model-detail=other]').getByText('Ask it').waitFor()
    // A place on the page is no other page.
    await deep.keyboard.press('Tab')
    await deep.keyboard.press('Enter')
    await detail(deep).waitFor()
    await page.context().close()
    await deep.context().close()
  })

  it('R101: is where a service without engines begins, which offers no camera that it would refuse', async () => {
    const gantry = gantryWith(fakeModelList([fakeModel('ppe_detect')]))
    gantry.engines = []
    const { url } = await serveFake({}, { gantry })
    const { page, misdeeds } = await openPage(browser, url)
    await row(page, 'ppe_detect').waitFor()
    await page.keyboard.press('a')
    await page.getByRole('link', { name: 'Cameras', exact: true }).click()
    await page.getByText('This service takes no cameras').waitFor()
    expect(await page.getByRole('button', { name: /add/i }).count()).toBe(0)
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.getByRole('link', { name: 'See the models' }).click()
    await row(page, 'ppe_detect').waitFor()
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('tells of each model its state and reason, where it runs, what it is asked and what that takes', async () => {
    const work = fakeWork(100, { waiting: 3, failures: { REJECTED: 4 } })
    const cached = {
      ...work,
      durations: {
        ...work.durations,
        fail: { count: 4, ms: 8 },
        cache_hit: { count: 30, ms: 1 },
        cache_miss: { count: 70, ms: 2 },
      },
    }
    const forCameras = [
      {
        version: '1',
        frames: 4_000,
        runs: 2_000,
        waiting: 0,
        failures: 0,
        inferMs: 88_000,
        latencyMs: { p50: 23, p99: 61 },
      },
    ]
    const list = (requests: number): ModelsView => {
      const { success, ...others } = cached.durations
      const durations = { ...others, success: { ...success, count: requests } }
      return fakeModelList([
        fakeModel('broken', {
          versions: [fakeDown('1', 'UNAVAILABLE', 'failed to load: the file ends early')],
        }),
        fakeModel('late', { versions: [fakeDown('1', 'LOADING', '')] }),
        fakeModel('partly', {
          versions: [fakeVersion(), fakeDown('2', 'UNAVAILABLE', 'no such operator: Foo')],
        }),
        fakeModel('ppe', { platform: 'ensemble', steps: ['letterbox', 'ppe_detect'] }),
        fakeModel('ppe_detect', {
          isCached: true,
          forCameras,
          versions: [
            fakeVersion({
              instances: { count: 4, ready: 3 },
              places: ['cuda:1'],
              failedPlaces: ['tensorrt:1: libnvinfer.so.10 is missing'],
              work: { ...cached, durations },
            }),
          ],
        }),
        fakeModel('rests', { versions: [fakeDown('1', 'UNAVAILABLE', 'unloaded')] }),
      ])
    }
    const gantry = gantryWith(list(100))
    await gantry.addCamera(fakeCamera('dock-1'))
    await gantry.addCamera(fakeCamera('off', { enabled: false }))
    const { url } = await serveFake({}, { gantry })
    const { page, misdeeds } = await openPage(browser, `${url}/#/models`)
    const badge = (name: string) => row(page, name).locator('.badge').textContent()
    await row(page, 'late').waitFor()
    expect({
      broken: await badge('broken'),
      late: await badge('late'),
      partly: await badge('partly'),
      detect: await badge('ppe_detect'),
      rests: await badge('rests'),
    }).toEqual({
      broken: 'unavailable',
      late: 'loading',
      partly: '1 of 2 ready',
      detect: 'ready',
      rests: 'unloaded',
    })
    await row(page, 'broken').getByText('the file ends early').waitFor()
    // Requests that come between two looks.
    gantry.modelList = list(400)
    await expect
      .poll(() => row(page, 'ppe_detect').locator('td').nth(2).textContent(), patient)
      .toMatch(/^\d+/)

    await page.getByRole('link', { name: 'ppe_detect' }).click()
    const text = async () => (await detail(page).textContent()) ?? ''
    for (const wanted of [
      '4 instances, 3 of them up on GPU 1 (cuda)',
      'Not on tensorrt:1: libnvinfer.so.10 is missing',
      '4 refused: the queue was full',
      'waiting 3.0 ms',
      'model 20 ms',
      '30 (30 %)',
      'A part of what the cameras run (ppe): dock-1.',
      'FP32 [?, 3, 416, 416]',
      'batches up to 8',
    ])
      expect(await text()).toContain(wanted)
    const batches = await page.locator('.model-batches tbody tr').allTextContents()
    expect(batches.map((line) => /^\d+/.exec(line)?.[0].slice(0, 1))).toEqual(['1', '4', '8'])
    await page.goto(`${url}/#/models/ppe`)
    await page.getByRole('link', { name: 'ppe_detect' }).last().click()
    await page.locator('[data-model-detail=ppe_detect]').waitFor()
    await page.goto(`${url}/#/models/nowhere`)
    await page.getByText('There is no model of that name').waitFor()
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('R102: says what the model server is at while it is away, and keeps what it told, as old', async () => {
    const gantry = gantryWith(fakeModelList([fakeModel('ppe_detect')]))
    const { url } = await serveFake({}, { gantry })
    const { page, misdeeds } = await openPage(browser, `${url}/#/models`)
    await row(page, 'ppe_detect').waitFor()
    const away = { isTold: false, reason: 'ended by SIGKILL' } as const
    gantry.modelList = fakeModelList([], { ...away, state: 'restarting' })
    await page.getByText('The model server is restarting. ended by SIGKILL').waitFor()
    await row(page, 'ppe_detect').waitFor()
    gantry.modelList = fakeModelList([fakeModel('ppe_detect')])
    await page.locator('.models-note').waitFor({ state: 'detached' })
    gantry.modelList = fakeModelList([], { isTold: false, state: 'ready' })
    await page.getByText('does not tell in time').waitFor()
    gantry.modelList = fakeModelList([], { isTold: false, state: 'idle', control: 'asked' })
    await page.getByRole('button', { name: 'Start it and list the models' }).waitFor()
    await row(page, 'ppe_detect').waitFor({ state: 'detached' })
    gantry.modelList = fakeModelList([], { isTold: false, state: 'off', control: null })
    await page.getByText('This service has no model server').waitFor()
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('shows 200 models and one of 50 versions without delay, and filters them', async () => {
    const versions = Array.from({ length: 50 }, (_, i) => fakeVersion({ version: String(i + 1) }))
    const many = Array.from({ length: 199 }, (_, i) => fakeModel(`model_${i}`))
    const gantry = gantryWith(fakeModelList([fakeModel('a_many', { versions }), ...many]))
    const { url } = await serveFake({}, { gantry })
    const { page, misdeeds } = await openPage(browser, `${url}/#/models/a_many`)
    await row(page, 'model_198').waitFor()
    expect(await page.locator('tr[data-model]').count()).toBe(200)
    expect(await page.locator('tr[data-version]').count()).toBe(50)
    await page.locator('tr[data-version="7"] button').click()
    await page.locator('[data-figures="7"]').waitFor()
    // What of the script runs at one go, over some polls.
    const longestMs = await page.evaluate(
      () =>
        new Promise<number>((resolve) => {
          let longest = 0
          new PerformanceObserver((entries) => {
            for (const { duration } of entries.getEntries()) longest = Math.max(longest, duration)
          }).observe({ entryTypes: ['longtask'] })
          setTimeout(() => resolve(longest), 5_000)
        }),
    )
    expect(longestMs).toBeLessThan(3_000)
    await page.keyboard.press('/')
    await page.keyboard.type('MODEL_19')
    await expect.poll(() => page.locator('tr[data-model]').count(), patient).toBe(10)
    await page.locator('#models-filter').fill('nothing of that name')
    await page.getByText('No model has').waitFor()
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('shows hostile names as text, wherever they stand', async () => {
    const hostile = fakeModel(evil, {
      platform: evil,
      inputs: [{ name: evil, datatype: 'FP32', shape: [1] }],
      steps: [evil, `${evil}2`],
      versions: [fakeVersion({ places: [evil], failedPlaces: [evil] }), fakeDown('2', 'UNAVAILABLE', evil)],
    })
    const gantry = gantryWith(fakeModelList([hostile, fakeModel('../../api/v1/cameras')], { reason: evil }))
    const { url } = await serveFake({}, { gantry })
    const { page, misdeeds } = await openPage(browser, `${url}/#/models/${encodeURIComponent(evil)}`)
    await detail(page).getByText('Ask it').waitFor()
    expect(await page.locator('#model-title').textContent()).toBe(evil)
    expect(await page.locator('main img, main script').count()).toBe(0)
    await page.goto(`${url}/#/models/%E0%A4%A`)
    await page.getByText('There is no model of that name').waitFor()
    await page.goto(`${url}/#/models/constructor`)
    await page.getByText('There is no model of that name').waitFor()
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('fits a phone, one thing at a time', async () => {
    const long = `model_${'x'.repeat(120)}`
    const gantry = gantryWith(fakeModelList([fakeModel('ppe_detect'), fakeModel(long)]))
    const { url } = await serveFake({}, { gantry })
    const { page, misdeeds } = await openPage(browser, `${url}/#/models`, phone)
    await row(page, 'ppe_detect').waitFor()
    expect(await fits(page)).toBe(true)
    await page.getByRole('link', { name: long }).click()
    await detail(page).getByText('Ask it').waitFor()
    expect(await fits(page)).toBe(true)
    expect(await row(page, 'ppe_detect').isVisible()).toBe(false)
    await page.getByRole('link', { name: 'Back to all models' }).click()
    await row(page, 'ppe_detect').waitFor()
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('asks before a model goes, and tells what the server says against it', async () => {
    const gantry = gantryWith(fakeModelList([fakeModel('ppe_detect')]))
    const { url } = await serveFake({}, { gantry })
    const { page } = await openPage(browser, `${url}/#/models/ppe_detect`)
    const asked: string[] = []
    await page.route('**/v2/repository/**', async (route) => {
      asked.push(new URL(route.request().url()).pathname)
      const fails = route.request().url().endsWith('/load')
      await route.fulfill(
        fails ? { status: 400, json: { error: "failed to load 'ppe_detect': no ONNX" } } : { json: {} },
      )
    })
    await page.getByRole('button', { name: 'Unload' }).click()
    const dialog = page.getByRole('alertdialog')
    await dialog.getByRole('button', { name: 'Keep it' }).click()
    expect(asked).toEqual([])
    await page.getByRole('button', { name: 'Unload' }).click()
    await dialog.getByRole('button', { name: 'Unload' }).click()
    await page.getByText('Model ppe_detect was unloaded.').waitFor()
    await page.getByRole('button', { name: 'Load again' }).click()
    await page.getByRole('alert').getByText("failed to load 'ppe_detect': no ONNX").waitFor()
    expect(asked).toEqual(['unload', 'load'].map((what) => `/v2/repository/models/ppe_detect/${what}`))
    for (const control of ['none', 'poll'] as const) {
      gantry.modelList = fakeModelList([fakeModel('ppe_detect')], { control })
      await page.getByText(control === 'poll' ? 'Follows its folder' : 'Loaded at the start').waitFor()
      expect(await page.getByRole('button', { name: /load/i }).count()).toBe(0)
    }
    await page.context().close()
  })
})
