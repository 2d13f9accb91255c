import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launchBrowser, openPage, skipsBrowser } from '../support/browser.js'
import { fakeCamera, FakeGantry } from '../support/fake-gantry.js'
import { serveFake } from '../support/serve-fake.js'

describe.skipIf(skipsBrowser())('the page of a node of a cluster', () => {
  let browser: Browser

  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  async function gantryWith(...ids: readonly string[]): Promise<FakeGantry> {
    const gantry = new FakeGantry()
    for (const id of ids) await gantry.addCamera(fakeCamera(id))
    return gantry
  }

  it('shows the nodes, which of them has a camera, and how this one stands', async () => {
    const gantry = await gantryWith('dock', 'gate')
    gantry.setNode('dock', 'plant-2')
    gantry.setNode('gate', null)
    gantry.cluster = {
      ...{ id: 'plant', node: 'plant-1', state: 'cut_off', reason: 'the brokers do not answer' },
      ...{ slots: 256, held: 128, cameras: 2 },
      nodes: [
        { node: 'plant-1', url: 'http://one:8000', version: '1.0.0', leftAt: null },
        { node: 'plant-2', url: 'http://two:8000', version: '1.0.0', leftAt: null },
        { node: 'plant-3', url: null, version: null, leftAt: new Date(Date.now() - 60_000).toISOString() },
        {
          node: 'plant-4',
          url: null,
          version: null,
          leftAt: new Date(Date.now() - 2 * 3_600_000).toISOString(),
        },
      ],
    }
    const { url } = await serveFake({}, { gantry })
    const { page, misdeeds } = await openPage(browser, url)
    const system = page.getByRole('region', { name: 'System' })
    await system.getByText('node plant-1').waitFor()
    const text = await system.innerText()
    expect(text).toMatch(/cut off/)
    expect(text).toMatch(/128 of 256 slots of cluster plant/)
    expect(text).toMatch(/the brokers do not answer/)
    const rows = (await system.getByRole('listitem').allInnerTexts()).map((row) =>
      row.replaceAll(/\s+/g, ' '),
    )
    expect(rows.filter((row) => row.includes('node plant-'))).toEqual([
      expect.stringMatching(/cut off node plant-1 has 128 of 256 slots of cluster plant, 0 cameras/),
      expect.stringMatching(/^member node plant-2 1 camera$/),
      expect.stringMatching(/^gone node plant-3 left /),
    ])

    await page.locator('[data-camera="dock"] .tile-open').click()
    const facts = page.getByRole('dialog').locator('.facts')
    await facts.getByText('plant-2').waitFor()
    expect(await facts.innerText()).toMatch(/in the cluster/)
    await page.keyboard.press('ArrowRight')
    await facts.getByText('none yet').waitFor()
    expect(misdeeds.errors).toEqual([])
    await page.context().close()
  })

  it('speaks of no nodes where there is no cluster', async () => {
    const { url } = await serveFake({}, { gantry: await gantryWith('dock') })
    const { page } = await openPage(browser, url)
    await page.locator('[data-camera="dock"] .tile-open').click()
    const facts = await page.getByRole('dialog').locator('.facts').innerText()
    expect(facts).toMatch(/Kept/)
    expect(facts).not.toMatch(/Node/)
    expect(await page.getByRole('region', { name: 'System' }).innerText()).not.toMatch(/cluster/)
    await page.context().close()
  })
})
