import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { KafkaBroker, kafkaMissing } from '../support/kafka.js'
import { TestService } from '../support/service.js'
import { saidBy } from '../support/shell-command.js'

const nothing = { dialogs: [], violations: [], errors: [], foreign: [] }
/** Browser, decoders and models share the cores of this machine. */
const patient = { timeout: 60_000 }
const perTest = 240_000
const token = 'a-token-that-nobody-knows'
const repository = join(import.meta.dirname, '../../models')

const commandOf = (page: Page, label: string | RegExp): Promise<string> =>
  page.getByRole('group', { name: label }).last().innerText()

describe.skipIf(skipsBrowser())('the page of the models on a real service', () => {
  let browser: Browser

  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  it('loads, asks and unloads models of a service without cameras', { timeout: perTest }, async () => {
    const models = mkdtempSync(join(tmpdir(), 'gantry-models-page-'))
    for (const name of ['ppe', 'ppe_detect', 'ppe_detect_int8', 'ppe_detect_video', 'ppe_detect_video_fp32'])
      cpSync(join(repository, name), join(models, name), { recursive: true })
    mkdirSync(join(models, 'broken/1'), { recursive: true })
    writeFileSync(join(models, 'broken/1/model.onnx'), 'no model')
    try {
      await using service = await TestService.start({
        server: { token },
        pipeline: {
          engines: 0,
          modelServer: { enabled: true },
          models: { repository: models, control: 'explicit' },
        },
      })
      const { page, misdeeds } = await openPage(browser, service.url)
      await page.locator('[name=token]').fill(token)
      await page.getByRole('button', { name: 'Continue' }).click()
      const row = (name: string) => page.locator(`tr[data-model="${name}"]`)
      await row('ppe_detect_int8').getByText('not loaded').waitFor(patient)

      for (const name of ['ppe_detect_int8', 'ppe']) {
        await page.getByRole('link', { name, exact: true }).first().click()
        await page.locator(`[data-model-detail=${name}]`).getByRole('button', { name: 'Load' }).click()
        await row(name).getByText('ready').waitFor(patient)
        await page.getByText('Ask it').waitFor(patient)
        const command = await commandOf(page, `Command that asks ${name}`)
        expect(command).not.toContain(token)
        const said = await saidBy(command, /"outputs"|error/, { GANTRY_TOKEN: token })
        expect(said).toContain('"outputs"')
        await page
          .locator('.model-figures div', { hasText: /^requests1$|^1requests$/ })
          .first()
          .waitFor(patient)
        await page.locator('.model-latency').waitFor(patient)
      }
      await page.getByRole('link', { name: 'ppe_detect_int8' }).first().click()
      await page.locator('.model-batches').waitFor(patient)
      await page.getByText(/instances? on CPU/).waitFor(patient)
      expect(await page.content()).not.toContain(token)

      await page.getByRole('button', { name: 'Unload' }).click()
      await page.getByRole('alertdialog').getByRole('button', { name: 'Unload' }).click()
      await row('ppe_detect_int8').getByText('unloaded').waitFor(patient)

      await page.getByRole('link', { name: 'broken' }).click()
      await page.locator('[data-model-detail=broken]').getByRole('button', { name: 'Load' }).click()
      await page.locator('.model-controls [role=alert]', { hasText: /load.*broken/ }).waitFor(patient)
      expect(misdeeds).toEqual(nothing)
      await page.context().close()
    } finally {
      rmSync(models, { recursive: true, force: true })
    }
  })
})

const missing = await kafkaMissing()

describe.skipIf(skipsBrowser() || missing !== undefined)('the first ten minutes', () => {
  let browser: Browser
  let rtsp: LoopingRtspServer
  let broker: KafkaBroker
  let service: TestService

  beforeAll(async () => {
    browser = await launchBrowser()
    rtsp = await rtspCameras(1)
    broker = await KafkaBroker.start()
    service = await TestService.start({
      server: { token },
      pipeline: {
        name: 'demo',
        modelServer: { enabled: true },
        cameras: [{ id: 'dock-1', url: rtsp.url('/cam1'), sampleFps: 1 }],
        sinks: { kafka: { brokers: [broker.address], topics: { detections: 'plant.seen' } } },
      },
    })
  }, 240_000)

  afterAll(async () => {
    await service?.[Symbol.asyncDispose]()
    await broker?.stop()
    await rtsp?.stop()
    await browser?.close()
  })

  it('R103: gives commands that work as they stand, and no token', { timeout: perTest }, async () => {
    const { page, misdeeds } = await openPage(browser, service.url)
    await page.locator('[name=token]').fill(token)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('What am I looking at?').waitFor(patient)
    await page.locator('[data-camera=dock-1][data-state=live]').waitFor(patient)
    await page.locator('.tile-seen').getByText('person').first().waitFor(patient)
    const env = { GANTRY_TOKEN: token }
    const ways: readonly (readonly [name: string, wanted: RegExp])[] = [
      ['curl', /"cameraId":"dock-1".*"nextCursor"|"items":\[\{"cameraId":"dock-1"/],
      ['WebSocket', /"type":"detections".*"cameraId":"dock-1"|"cameraId":"dock-1".*"type":"detections"/],
      ['Kafka', /^dock-1 \{"cameraId":"dock-1"/m],
    ]
    for (const [name, wanted] of ways) {
      await page.getByRole('button', { name, exact: true }).click()
      const command = await commandOf(page, `Command for ${name}`)
      expect(command).not.toContain(token)
      await saidBy(command, wanted, env)
    }
    const add = await commandOf(page, 'Command that adds a camera')
    expect(await saidBy(add, /"id":"my-camera".*"stats"/, env)).toContain('"persist":true')
    await page.locator('[data-camera=my-camera]').waitFor(patient)
    // What was added is no footage of the demo.
    expect(await page.getByText('recorded clips that one camera plays').count()).toBe(1)

    await page.getByRole('button', { name: 'Dismiss the first steps' }).click()
    await page.getByText('What am I looking at?').waitFor({ state: 'detached' })
    await page.reload()
    await page.locator('[data-camera=dock-1]').waitFor(patient)
    expect(await page.getByText('What am I looking at?').count()).toBe(0)
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByText('How do I get the data out?').waitFor()
    await page.keyboard.press('Escape')

    // The model server sleeps beside cameras until somebody asks.
    await page.getByRole('link', { name: 'Models', exact: true }).click()
    await page.locator('tr[data-model=ppe_detect_video]').getByText('for cameras').waitFor(patient)
    await page.getByRole('button', { name: 'Start it and list the models' }).click()
    await page.locator('tr[data-model=ppe_detect_int8]').getByText('not asked for').waitFor(patient)
    await page.getByRole('link', { name: 'ppe_detect_video' }).first().click()
    await page.locator('[data-for-cameras]').getByText('dock-1').waitFor(patient)
    await page.getByRole('button', { name: 'Load', exact: true }).click()
    await page.locator('tr[data-model=ppe_detect_video]').getByText('ready').waitFor(patient)
    expect(misdeeds).toEqual(nothing)
    await page.context().close()
  })
})
