#!/usr/bin/env node
// `node scripts/page-picture.mjs [URL] [SECONDS]`: docs/dashboard.jpg, of the demo that `npm start` runs. The charts want some minutes.
import './lib/right-node.mjs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import sharp from 'sharp'
import { root } from './lib/root.mjs'

const [url = 'http://127.0.0.1:8000/', seconds = '150'] = process.argv.slice(2)
const browser = await chromium.launch({
  executablePath: process.env.GANTRY_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
})
try {
  const page = await browser.newPage({
    viewport: { width: 1440, height: 900 },
    colorScheme: 'dark',
    reducedMotion: 'reduce',
  })
  await page.goto(url)
  await page.locator('.tile[data-state=live] canvas[data-seq]').first().waitFor({ timeout: 60_000 })
  // What the charts show is what was captured while the page was open.
  await page.waitForTimeout(Number(seconds) * 1_000)
  const file = join(root, 'docs/dashboard.jpg')
  const { size } = await sharp(await page.screenshot())
    .resize(1200)
    .jpeg({ quality: 82, mozjpeg: true })
    .toFile(file)
  process.stdout.write(`${file}: ${Math.round(size / 1024)} KiB\n`)
} finally {
  await browser.close()
}
