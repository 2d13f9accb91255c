import sharp from 'sharp'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pictureMessage } from '../../src/messages/picture-message.js'
import { launchBrowser, openPage, skipsBrowser, type Misdeeds } from '../support/browser.js'
import { textOf } from '../support/detections.js'
import { fakeCamera, fakeGpu, fakeResult, FakeGantry } from '../support/fake-gantry.js'
import { serveFake } from '../support/serve-fake.js'

const clean: Misdeeds = { dialogs: [], violations: [], errors: [], foreign: [] }
const evil = '<img src=x onerror=alert(1)>"><script>alert(2)</script>'

let browser: Browser
const greyPictureBytes = (): Promise<Buffer> =>
  sharp({ create: { width: 640, height: 360, channels: 3, background: { r: 60, g: 60, b: 60 } } })
    .jpeg()
    .toBuffer()

async function gantryWith(cameras: number): Promise<FakeGantry> {
  const gantry = new FakeGantry()
  for (let i = 1; i <= cameras; i += 1) await gantry.addCamera(fakeCamera(`cam-${i}`))
  return gantry
}

/** Waits until the page asks for pictures of these cameras and no others, and follows the results of all. */
async function watched(gantry: FakeGantry, cameras: readonly string[]): Promise<void> {
  await expect
    .poll(() => [...gantry.stream.pictureCameras].sort(), { timeout: 15_000 })
    .toEqual([...cameras].sort())
  await expect
    .poll(() => gantry.stream.subscriptions.some(({ cameras, frames }) => cameras.includes('*') && !frames), {
      timeout: 15_000,
    })
    .toBe(true)
}

/** Colour at a point of a canvas, in shares of its size. */
function colorAt(page: Page, selector: string, x: number, y: number): Promise<number[]> {
  return page.locator(selector).evaluate(
    (element, point) => {
      const canvas = element as HTMLCanvasElement
      const pixel = [Math.round(point.x * canvas.width), Math.round(point.y * canvas.height)] as const
      return [...(canvas.getContext('2d')?.getImageData(...pixel, 1, 1).data ?? [])].slice(0, 3)
    },
    { x, y },
  )
}

/** Pixels of a helmet's green just above a place of the picture, 0..1 from its top: the caption of a box that begins there. */
function captionWidth(page: Page, selector: string, top: number): Promise<number> {
  return page.locator(selector).evaluate((element, y) => {
    const canvas = element as HTMLCanvasElement
    // A line between the letters and the upper edge of the caption.
    const row = Math.round(y * canvas.height - 15 * devicePixelRatio)
    const { data } = canvas.getContext('2d')!.getImageData(0, row, canvas.width, 1)
    let green = 0
    for (let at = 0; at < data.length; at += 4) if (data[at + 1]! - data[at]! > 100) green += 1
    return green
  }, top)
}

function near(color: number[], wanted: readonly number[]): boolean {
  return color.every((value, i) => Math.abs(value - (wanted[i] ?? 0)) <= 40)
}

const shown = (page: Page, camera: string, seq: number): Promise<unknown> =>
  page.locator(`[data-camera="${camera}"] canvas[data-seq="${seq}"]`).waitFor()

describe.skipIf(skipsBrowser())('the page', () => {
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  it('draws the picture of a frame with the boxes found in that very frame, where they are', async () => {
    const { url, gantry } = await serveFake({}, { gantry: await gantryWith(1) })
    const { page, misdeeds } = await openPage(browser, url)
    await watched(gantry, ['cam-1'])
    // A box over the right half of the 1280x720 source, another in the lower left.
    const detections = [
      { label: 'helmet', score: 0.9, boxPx: { x1: 640, y1: 180, x2: 1152, y2: 540 } },
      { label: 'head', score: 0.8, boxPx: { x1: 128, y1: 432, x2: 384, y2: 648 } },
    ]
    gantry.emit(fakeResult('cam-1', 7, { detections }), await greyPictureBytes())
    await shown(page, 'cam-1', 7)
    const canvas = '[data-camera="cam-1"] canvas'
    const green = [52, 209, 123]
    const red = [255, 90, 95]
    for (const [x, y] of [
      [0.5, 0.5],
      [0.9, 0.5],
      [0.7, 0.75],
    ] as const)
      expect(near(await colorAt(page, canvas, x, y), green), `green at ${x}, ${y}`).toBe(true)
    for (const [x, y] of [
      [0.1, 0.75],
      [0.3, 0.75],
      [0.2, 0.9],
    ] as const)
      expect(near(await colorAt(page, canvas, x, y), red), `red at ${x}, ${y}`).toBe(true)
    for (const [x, y] of [
      [0.45, 0.5],
      [0.7, 0.5],
      [0.2, 0.8],
      [0.95, 0.95],
    ] as const)
      expect(near(await colorAt(page, canvas, x, y), [60, 60, 60]), `grey at ${x}, ${y}`).toBe(true)
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('shows what later steps say of a thing beside its label', async () => {
    const { url, gantry } = await serveFake({}, { gantry: await gantryWith(1) })
    const { page } = await openPage(browser, url)
    await watched(gantry, ['cam-1'])
    const helmet = { label: 'helmet', score: 0.9, boxPx: { x1: 320, y1: 180, x2: 1152, y2: 540 } }
    const attributes = [{ name: 'helmet_colour', value: 'yellow', score: 0.93 }]
    const widths: number[] = []
    for (const [seq, detection] of [helmet, { ...helmet, attributes }].entries()) {
      gantry.emit(fakeResult('cam-1', seq + 1, { detections: [detection] }), await greyPictureBytes())
      await shown(page, 'cam-1', seq + 1)
      widths.push(await captionWidth(page, '[data-camera="cam-1"] canvas', 0.25))
    }
    const [plain = 0, described = 0] = widths
    expect(plain).toBeGreaterThan(40)
    expect(described).toBeGreaterThan(plain + 25)
    await page.context().close()
  })

  it('never draws boxes on another frame than theirs', async () => {
    const { url, gantry } = await serveFake({}, { gantry: await gantryWith(1) })
    const { page } = await openPage(browser, url)
    await watched(gantry, ['cam-1'])
    gantry.emit(fakeResult('cam-1', 1), await greyPictureBytes())
    await shown(page, 'cam-1', 1)
    // Results without a picture change the list, but nothing at the picture.
    const person = { label: 'person', score: 0.9, boxPx: { x1: 1, y1: 1, x2: 90, y2: 90 } }
    gantry.emit(fakeResult('cam-1', 2, { detections: [person] }))
    await page.locator('.sighting').getByText('1 person').waitFor()
    expect(await page.locator('.tile-seen').textContent()).toBe('1 helmet')
    expect(await page.locator('canvas[data-seq="1"]').count()).toBe(1)
    gantry.emit(fakeResult('cam-1', 3), await greyPictureBytes())
    await shown(page, 'cam-1', 3)
    await page.context().close()
  })

  it('maps boxes of a region of interest into its picture', async () => {
    const { url, gantry } = await serveFake({}, { gantry: await gantryWith(1) })
    const { page } = await openPage(browser, url)
    await watched(gantry, ['cam-1'])
    const message = fakeResult('cam-1', 1, {
      detections: [{ label: 'helmet', score: 0.9, boxPx: { x1: 960, y1: 450, x2: 1120, y2: 630 } }],
    })
    gantry.emit(message)
    const header = {
      type: 'picture' as const,
      cameraId: 'cam-1',
      seq: 1,
      capturedAt: message.capturedAt,
      widthPx: 640,
      heightPx: 360,
      // The lower right quarter of the source.
      sourceWidthPx: 640,
      sourceHeightPx: 360,
      sourceXPx: 640,
      sourceYPx: 360,
      mime: 'image/jpeg' as const,
    }
    gantry.stream.publish(textOf(message), pictureMessage(header, await greyPictureBytes()))
    await shown(page, 'cam-1', 1)
    const canvas = '[data-camera="cam-1"] canvas'
    expect(near(await colorAt(page, canvas, 0.5, 0.5), [52, 209, 123])).toBe(true)
    expect(near(await colorAt(page, canvas, 0.75, 0.5), [52, 209, 123])).toBe(true)
    expect(near(await colorAt(page, canvas, 0.625, 0.5), [60, 60, 60])).toBe(true)
    await page.context().close()
  })

  it('adds a camera, shows what the server finds wrong beside the fields, and removes it after asking', async () => {
    const { url, gantry } = await serveFake()
    const { page, misdeeds } = await openPage(browser, url)
    await page.getByText('No cameras yet').waitFor()
    await page.keyboard.press('a')
    const dialog = page.getByRole('dialog', { name: 'Add a camera' })
    await dialog.getByLabel('URL').fill('gopher://camera')
    await dialog.locator('[name=id]').fill('no spaces!')
    await dialog.getByLabel('Frames per second').fill('0')
    await dialog.getByText('More settings').click()
    await dialog.getByLabel('Shape of the picture').fill('wide')
    await dialog.getByRole('button', { name: 'Add camera' }).click()
    await dialog.locator('#sampleFps-note.field-error').waitFor()
    expect(await dialog.locator('#displayAspectRatio-note').textContent()).toContain('such as 16:9')
    expect(await dialog.locator('#sampleFps-note').textContent()).toBe('must be more than 0')
    expect(await dialog.locator('[name=id]').getAttribute('aria-invalid')).toBe('true')
    expect(await dialog.locator('#url-note.field-error').textContent()).toContain('has the scheme "gopher:"')
    await expect
      .poll(() => dialog.locator('[name=url]').evaluate((field) => field === document.activeElement))
      .toBe(true)
    await dialog.getByLabel('Shape of the picture').fill('16:9')
    await dialog.locator('[name=id]').fill('gate')
    await dialog.locator('[name=sampleFps]').fill('2.5')
    await dialog.getByRole('button', { name: 'Add camera' }).click()
    await dialog.locator('#url-note.field-error').waitFor()
    await dialog.locator('[name=url]').fill('rtsp://127.0.0.1/gate')
    await dialog.getByRole('button', { name: 'Add camera' }).click()
    await page.locator('[data-camera=gate]').waitFor()
    expect(await page.locator('dialog').count()).toBe(0)
    expect(gantry.camera('gate')).toMatchObject({
      persist: true,
      config: { sampleFps: 2.5, displayAspectRatio: '16:9' },
    })

    await page.getByRole('button', { name: 'Switch off gate' }).click()
    await page.locator('[data-camera=gate][data-state=disabled]').waitFor()
    await page.getByRole('button', { name: 'Remove gate' }).click()
    const question = page.getByRole('alertdialog')
    await question.getByRole('button', { name: 'Keep it' }).click()
    expect(gantry.cameras()).toHaveLength(1)
    await page.locator('[data-camera=gate] .tile-open').focus()
    await page.keyboard.press('Delete')
    await question.getByRole('button', { name: 'Remove', exact: true }).click()
    await page.getByText('No cameras yet').waitFor()
    expect(gantry.cameras()).toEqual([])
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('S14: takes a login beside the URL as it is typed, and never shows it again', async () => {
    const { url, gantry } = await serveFake()
    const { page, misdeeds } = await openPage(browser, url)
    await page.getByText('No cameras yet').waitFor()
    await page.keyboard.press('a')
    const dialog = page.getByRole('dialog', { name: 'Add a camera' })
    const password = ' c4nary@p:w/o#r?d%"ü '
    await dialog.getByLabel('URL').fill('rtsp://127.0.0.1/hall')
    await dialog.getByLabel('User name').fill('us@er')
    expect(await dialog.locator('[name=password]').getAttribute('type')).toBe('password')
    await dialog.getByLabel('Password').fill(password)
    await dialog.getByRole('button', { name: 'Add camera' }).click()
    await page.locator('[data-camera=hall]').waitFor()
    expect(gantry.added).toMatchObject([{ id: 'hall', username: 'us@er', password }])

    await page.getByRole('button', { name: 'Switch off hall' }).click()
    await page.locator('[data-camera=hall][data-state=disabled]').waitFor()
    expect(gantry.patched).toEqual([{ enabled: false }])
    await page.locator('[data-camera=hall] .tile-open').click()
    await page.locator('dialog .facts').getByText('set, and not shown').waitFor()
    expect(await page.content()).not.toMatch(/c4nary|us@er/)
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('S14: says what is wrong with a login beside its fields', async () => {
    const { url } = await serveFake()
    const { page } = await openPage(browser, url)
    await page.getByRole('button', { name: 'Add the first camera' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add a camera' })
    await dialog.getByLabel('URL').fill('rtsp://admin:p@ss#c4nary/word@192.0.2.10/hall')
    expect(await dialog.locator('[name=id]').inputValue()).toBe('hall')
    await dialog.locator('[name=sampleFps]').fill('0')
    await dialog.getByRole('button', { name: 'Add camera' }).click()
    await dialog.locator('#url-note.field-error').waitFor()
    expect(await dialog.locator('#url-note').textContent()).toContain(
      'Write @ as %40, # as %23 and / as %2F in user name and password: rtsp://***@192.0.2.10/hall',
    )
    await dialog.locator('[name=url]').fill('rtsp://192.0.2.10/hall')
    await dialog.locator('[name=username]').fill('admin')
    await dialog.getByRole('button', { name: 'Add camera' }).click()
    await dialog.locator('#password-note.field-error').waitFor()
    expect(await dialog.locator('#password-note').textContent()).toContain('is missing beside username')
    expect(await page.content()).not.toContain('c4nary')
    await page.context().close()
  })

  it('shows text as text, wherever it comes from', async () => {
    const gantry = new FakeGantry()
    await gantry.addCamera(fakeCamera('cam-1', { name: evil, url: `rtsp://h/${evil}` }))
    gantry.setStatus('cam-1', { state: 'backoff', reason: evil, retryInMs: 5_000 })
    await gantry.addCamera(fakeCamera('cam-2', { name: evil }))
    gantry.reasons = [evil]
    gantry.sinks = [
      {
        name: evil,
        state: 'down',
        reason: evil,
        queued: 1,
        delivered: 2,
        dropped: 3,
        filtered: 0,
        rejected: {},
      },
    ]
    gantry.cache = { backend: 'redis', state: 'down', reason: evil }
    const [engine] = gantry.engines
    if (!engine?.detector) throw new Error('the fake has an engine')
    gantry.engines = [
      {
        ...engine,
        reason: evil,
        detector: { ...engine.detector, model: { name: evil, version: evil }, providerNotes: [evil] },
      },
    ]
    const { url } = await serveFake({}, { gantry })
    const { page, misdeeds } = await openPage(browser, url)
    await watched(gantry, ['cam-1', 'cam-2'])
    const attributes = [{ name: evil, value: evil }]
    const detections = [
      { label: evil, score: 0.9, attributes, boxPx: { x1: 100, y1: 100, x2: 300, y2: 300 } },
    ]
    gantry.emit(fakeResult('cam-2', 1, { detections }), await greyPictureBytes())
    await shown(page, 'cam-2', 1)
    await page.locator('.sighting').first().waitFor()
    await page.locator('[data-camera=cam-1] .tile-open').click()
    await page.locator('dialog .facts').waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('/')
    await page.keyboard.type(evil)
    await page.keyboard.press('Escape')
    await page.keyboard.press('a')
    for (const name of ['url', 'id', 'name', 'sampleFps'])
      await page.locator(`dialog [name=${name}]`).fill(evil)
    await page.getByRole('dialog').getByRole('button', { name: 'Add camera' }).click()
    await page.locator('#id-note.field-error').waitFor()
    expect(await page.locator('img, #app script').count()).toBe(0)
    expect(await page.locator('.tile-name').first().textContent()).toBe(evil)
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('asks for pictures only of cameras on the screen, of 32', async () => {
    const { url, gantry } = await serveFake({}, { gantry: await gantryWith(32) })
    const { page } = await openPage(browser, url, { viewport: { width: 1000, height: 500 } })
    await page.locator('.tile').nth(31).waitFor({ state: 'attached' })
    await expect.poll(() => gantry.stream.pictureCameras.size).toBeGreaterThan(0)
    expect(gantry.stream.pictureCameras.has('cam-1')).toBe(true)
    expect(gantry.stream.pictureCameras.has('cam-32')).toBe(false)
    await page.locator('[data-camera="cam-32"]').scrollIntoViewIfNeeded()
    await expect.poll(() => gantry.stream.pictureCameras.has('cam-32')).toBe(true)
    expect(gantry.stream.pictureCameras.has('cam-1')).toBe(false)
    const picture = await greyPictureBytes()
    for (let seq = 1; seq <= 10; seq += 1)
      for (const { id } of gantry.cameras()) gantry.emit(fakeResult(id, seq), picture)
    await shown(page, 'cam-32', 10)
    // Every camera is heard in the list, also those whose pictures are not.
    await expect.poll(() => page.locator('.sighting .camera-link').count()).toBe(32)
    await page.context().close()
  })

  it('is worked by keyboard', async () => {
    const { url } = await serveFake({}, { gantry: await gantryWith(6) })
    const { page, misdeeds } = await openPage(browser, url)
    const focused = (): Promise<string | null> =>
      page.evaluate(
        () => document.activeElement?.closest('[data-camera]')?.getAttribute('data-camera') ?? null,
      )
    await page.locator('.tile-open').first().focus()
    await page.keyboard.press('ArrowRight')
    expect(await focused()).toBe('cam-2')
    await page.keyboard.press('End')
    expect(await focused()).toBe('cam-6')
    await page.keyboard.press('Home')
    const columns = await page
      .locator('.grid')
      .evaluate((grid) => getComputedStyle(grid).gridTemplateColumns.split(' ').length)
    await page.keyboard.press('ArrowDown')
    expect(await focused()).toBe(`cam-${1 + columns}`)
    await page.keyboard.press('Home')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'cam-1' }).waitFor()
    await page.keyboard.press('ArrowRight')
    await page.getByRole('dialog', { name: 'cam-2' }).waitFor()
    await page.keyboard.press('a')
    expect(await page.locator('dialog').count()).toBe(1)
    await page.keyboard.press('Escape')
    await expect.poll(() => page.locator('dialog').count()).toBe(0)
    await page.keyboard.press('/')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('sightings-filter')
    await page.keyboard.type('a?')
    expect(await page.locator('dialog').count()).toBe(0)
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Help' }).waitFor()
    const legend = await page.locator('.legend strong').allTextContents()
    expect(legend).toEqual(
      expect.arrayContaining(['helmet', 'head', 'vest', 'no vest', 'person', 'machinery']),
    )
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('follows the colours of the system until the person chooses, and remembers the choice', async () => {
    const { url } = await serveFake()
    const { page } = await openPage(browser, url, { colorScheme: 'dark' })
    const background = (): Promise<string> =>
      page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
    await page.getByText('No cameras yet').waitFor()
    expect(await background()).toBe('rgb(10, 14, 19)')
    await page.emulateMedia({ colorScheme: 'light' })
    await expect.poll(background).toBe('rgb(238, 241, 245)')
    await page.getByRole('button', { name: 'Switch to dark colours' }).click()
    expect(await background()).toBe('rgb(10, 14, 19)')
    await page.reload()
    await page.getByText('No cameras yet').waitFor()
    expect(await background()).toBe('rgb(10, 14, 19)')
    await page.context().close()
  })

  it('filters the newest detections by label and camera', async () => {
    const { url, gantry } = await serveFake({}, { gantry: await gantryWith(2) })
    const head = [{ label: 'head', score: 0.8, boxPx: { x1: 1, y1: 1, x2: 50, y2: 50 } }]
    // Before the page is opened: it asks for what was found earlier.
    gantry.emit(fakeResult('cam-1', 1))
    const { page } = await openPage(browser, url)
    await page.locator('.sighting').waitFor()
    await watched(gantry, ['cam-1', 'cam-2'])
    gantry.emit(fakeResult('cam-2', 1, { detections: head }))
    await expect.poll(() => page.locator('.sighting').count()).toBe(2)
    await page.locator('#sightings-filter').fill('head')
    await expect.poll(() => page.locator('.sighting').allTextContents()).toHaveLength(1)
    expect(await page.locator('.sighting .camera-link').textContent()).toBe('cam-2')
    await page.locator('#sightings-filter').fill('cam-1 helmet')
    await expect.poll(() => page.locator('.sighting .camera-link').allTextContents()).toEqual(['cam-1'])
    await page.locator('#sightings-filter').fill('zebra')
    await page.getByText('Nothing fits this filter.').waitFor()
    await page.context().close()
  })

  it('shows where a camera is decoded, and why not on the card', async () => {
    const gantry = await gantryWith(2)
    const decode = { mode: 'full', reason: '', keyFrameGapMs: null } as const
    const byReason = 'GPU 0 has 0.1 of 15.0 GiB left, and a decoder takes 560 MiB'
    gantry.setStatus('cam-1', { decode: { ...decode, by: 'software', byReason } })
    gantry.setStatus('cam-2', { decode: { ...decode, by: 'cuda-scaled', byReason: '' } })
    const { url } = await serveFake({}, { gantry })
    const { page } = await openPage(browser, url)
    for (const [camera, text] of [
      ['cam-1', `software (${byReason})`],
      ['cam-2', 'GPU, scaled there'],
    ]) {
      await page.locator(`[data-camera=${camera}] .tile-open`).click()
      const fact = page.locator('dialog .facts div', { has: page.getByText('Decoder', { exact: true }) })
      await expect.poll(() => fact.locator('dd').textContent()).toContain(text)
      await page.keyboard.press('Escape')
    }
    await page.context().close()
  })

  it('R64: shows that a camera is polled for snapshots', async () => {
    const gantry = await gantryWith(1)
    const decode = { mode: 'full', reason: 'snapshot, polled at 5 fps', keyFrameGapMs: null } as const
    gantry.setStatus('cam-1', { decode: { ...decode, by: 'software', byReason: '', polledFps: 5 } })
    const { url } = await serveFake({}, { gantry })
    const { page } = await openPage(browser, url)
    await page.locator('[data-camera=cam-1] .tile-open').click()
    const fact = page.locator('dialog .facts div', { has: page.getByText('Decoded', { exact: true }) })
    await expect.poll(() => fact.locator('dd').textContent()).toBe('snapshot, polled at 5 fps')
    await page.context().close()
  })

  it('shows why the service is not ready or degraded, and the state of each camera', async () => {
    const gantry = await gantryWith(2)
    gantry.setStatus('cam-2', { state: 'failed', reason: 'no such file' })
    const { url } = await serveFake({}, { gantry })
    const { page } = await openPage(browser, url)
    await page.locator('[data-service=ready]').waitFor()
    await page.locator('[data-camera="cam-2"] [data-badge=failed]').waitFor()
    expect(await page.locator('[data-camera="cam-2"] .notice').textContent()).toContain('no such file')
    gantry.sinks = [
      {
        name: 'kafka',
        state: 'down',
        reason: 'connection refused',
        queued: 1,
        delivered: 0,
        dropped: 0,
        filtered: 0,
        rejected: {},
      },
    ]
    await page.locator('[data-service=degraded]').waitFor()
    await page.getByText('kafka is down: connection refused').waitFor()
    gantry.reasons = ['engine 0 is restarting']
    await page.locator('[data-service=not-ready]').waitFor()
    await page.locator('.banner').getByText('engine 0 is restarting').waitFor()
    await page.context().close()
  })

  it('shows each graphics card, and what runs the cameras', async () => {
    const gantry = await gantryWith(1)
    const { url } = await serveFake({}, { gantry })
    const { page, misdeeds } = await openPage(browser, url)
    await page.locator('[data-camera="cam-1"]').waitFor()
    // Without a card nothing speaks of one.
    expect(await page.locator('#gpu-title').count()).toBe(0)

    const gib = 1024 ** 3
    const full = { memoryUsedBytes: 15.7 * gib, memoryTotalBytes: 16 * gib, utilization: null }
    gantry.graphicsCards = [
      fakeGpu(),
      fakeGpu({ index: 1, uuid: 'GPU-2', name: 'Tesla T4', ...full, powerLimitWatts: null }),
    ]
    const panel = page.locator('section:has(#gpu-title)')
    await panel.getByText('cameras on cpu').waitFor()
    const meters = (index: number) => panel.locator(`[data-gpu="${index}"] .meter`).allTextContents()
    expect(await panel.locator('h3').allTextContents()).toEqual([
      'GPU 0 NVIDIA H100 80GB HBM3',
      'GPU 1 Tesla T4',
    ])
    expect(await meters(0)).toEqual(['Utilisation45 %', 'Memory1.2 of 79.6 GiB', 'Power318 of 700 W'])
    expect(await meters(1)).toEqual(['Memory15.7 of 16.0 GiB', 'Power318 W'])
    const bar = (index: number) => panel.locator(`[data-gpu="${index}"] rect`).first()
    expect(await bar(0).getAttribute('width')).toBe('45')
    expect(await bar(1).getAttribute('class')).toBe('fill-bad')

    const [engine] = gantry.engines
    if (!engine?.detector) throw new Error('the fake has an engine')
    gantry.engines = [{ ...engine, detector: { ...engine.detector, provider: 'cuda' } }]
    await panel.locator('.badge.ok', { hasText: 'cameras on cuda' }).waitFor()

    const silent = { utilization: null, memoryUsedBytes: null, powerWatts: null }
    gantry.graphicsCards = [fakeGpu({ ...silent, reason: evil })]
    await panel.locator('.gpu-reason').waitFor()
    expect(await panel.locator('.gpu-reason').textContent()).toBe(`No figures: ${evil}`)
    expect(await meters(0)).toEqual([])
    gantry.graphicsCards = []
    await panel.waitFor({ state: 'detached' })
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })

  it('comes back by itself when the stream breaks, from where it was, and tells of gaps', async () => {
    const { url, gantry } = await serveFake({}, { gantry: await gantryWith(1) })
    const { page } = await openPage(browser, url)
    await watched(gantry, ['cam-1'])
    gantry.emit(fakeResult('cam-1', 1))
    gantry.emit(fakeResult('cam-1', 2))
    await page.locator('.sighting').waitFor()
    gantry.stream.cutAll()
    const resumed = (): (string | undefined)[] =>
      gantry.stream.subscriptions.map(({ resumeAfter }) => resumeAfter)
    await expect.poll(resumed, { timeout: 15_000 }).toContain('fake-2')
    await page.locator('[data-stream=open]').waitFor()
    await watched(gantry, ['cam-1'])
    gantry.stream.tellGap(12)
    await page.getByText('12 results are missing here').first().waitFor()
    await page.context().close()
  })

  it('says so while the service is away, and goes on when it is back', async () => {
    const first = await serveFake({}, { gantry: await gantryWith(1) })
    const { page } = await openPage(browser, first.url)
    await page.locator('[data-camera="cam-1"]').waitFor()
    await first.server.stop(1_000)
    await page.getByText('The service does not answer.').waitFor()
    await page.locator('[data-service=down]').waitFor()
    const httpPort = first.server.address?.httpPort ?? 0
    const second = await serveFake({ httpPort }, { gantry: await gantryWith(2) })
    await page.locator('[data-service=ready]').waitFor()
    await page.locator('[data-camera="cam-2"]').waitFor()
    await watched(second.gantry, ['cam-1', 'cam-2'])
    await page.context().close()
  })

  it('asks for the token, keeps it for the tab, and uses it for requests and streams', async () => {
    const token = 'sixteen-characters-é'
    const { url, gantry } = await serveFake({ token }, { gantry: await gantryWith(1) })
    const { page, misdeeds } = await openPage(browser, url)
    const dialog = page.getByRole('dialog', { name: 'This service wants a token' })
    await dialog.getByLabel('Token').fill('not the token')
    await page.keyboard.press('Enter')
    await page.getByText('The service did not take that token.').waitFor()
    await page.keyboard.press('Escape')
    await dialog.getByLabel('Token').fill(token)
    await dialog.getByRole('button', { name: 'Continue' }).click()
    await page.locator('[data-camera="cam-1"]').waitFor()
    await watched(gantry, ['cam-1'])
    await page.reload()
    await page.locator('[data-camera="cam-1"]').waitFor()
    expect(await page.locator('dialog').count()).toBe(0)
    expect(await page.evaluate(() => localStorage.length)).toBe(0)
    expect(misdeeds).toEqual(clean)
    await page.context().close()
  })
})
