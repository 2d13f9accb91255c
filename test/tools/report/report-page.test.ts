import { expect, it } from 'vitest'
import { htmlFacts, htmlTable, numberText } from '../../../src/tools/report/html.js'
import { lineChart } from '../../../src/tools/report/line-chart.js'
import { reportPage } from '../../../src/tools/report/report-page.js'

const evil = `<script>alert("x")</script>&'`

it('is a page of its own, with nothing from elsewhere, for light and dark', () => {
  const page = reportPage({
    title: 'Report',
    subtitle: 'of today',
    sections: [{ title: 'One', html: '<p>a</p>' }],
  })
  expect(page).toMatch(/^<!doctype html>/)
  expect(page).not.toMatch(/<script|<link|https?:|url\(|@import/)
  expect(page).toContain("default-src 'none'")
  expect(page).toContain('prefers-color-scheme: dark')
  expect(page).toContain('<p>a</p>')
})

it('shows text as text, wherever it stands', () => {
  const section = { title: evil, text: evil, html: htmlTable([evil], [[evil]]) + htmlFacts([[evil, evil]]) }
  const chart = lineChart(
    [
      { name: evil, points: [{ x: 1, y: 1, title: evil }] },
      { name: 'b', points: [] },
    ],
    { xLabel: evil, yLabel: evil, yMark: { y: 2, name: evil } },
  )
  const page = reportPage({ title: evil, subtitle: evil, sections: [section, { title: 'c', html: chart }] })
  expect(page).not.toContain('<script')
  expect(page).not.toMatch(/&(?!#\d+;|emsp;)/)
})

it.each([
  [0, '0'],
  [0.12345, '0.123'],
  [1.234, '1.23'],
  [12.34, '12.3'],
  [1234.5, '1,235'],
  [7, '7'],
  [NaN, ''],
])('writes %d as %s', (value, text) => {
  expect(numberText(value)).toBe(text)
})

it('sets columns of numbers to the right', () => {
  const html = htmlTable(
    ['name', 'value'],
    [
      ['a', 1],
      ['b', { html: '<b>2</b>' }],
    ],
  )
  expect(html).not.toContain('class="number"')
  expect(htmlTable(['name', 'value'], [['a', 1]])).toContain('<td class="number">1</td>')
})

/** Numbers of a kind of attribute, in order. */
const numbers = (svg: string, attribute: string) =>
  [...svg.matchAll(new RegExp(`<circle[^>]* ${attribute}="([\\d.]+)"`, 'g'))].map(([, value]) =>
    Number(value),
  )

it('places points by their values, axes from 0 with round ticks', () => {
  const points = [
    { x: 0, y: 0 },
    { x: 100, y: 5 },
    { x: 200, y: 10 },
  ]
  const svg = lineChart([{ name: 'a', points }], { xLabel: 'x', yLabel: 'y' })
  const [xs, ys] = [numbers(svg, 'cx'), numbers(svg, 'cy')]
  expect(xs[1]! - xs[0]!).toBeCloseTo(xs[2]! - xs[1]!, 0)
  expect(ys[0]! - ys[1]!).toBeCloseTo(ys[1]! - ys[2]!, 0)
  expect(xs[0]).toBe(64)
  for (const tick of ['>0<', '>50<', '>200<', '>10<']) expect(svg).toContain(tick)
  expect(svg).not.toContain('NaN')
})

it.each([
  ['nothing', []],
  ['no number', [{ x: NaN, y: 1 }]],
])('draws %s without a fault', (_, points) => {
  expect(lineChart([{ name: 'a', points }], { xLabel: 'x', yLabel: 'y' })).toContain('nothing to draw')
})

it('draws one point, also at 0', () => {
  expect(lineChart([{ name: 'a', points: [{ x: 0, y: 0 }] }], { xLabel: 'x', yLabel: 'y' })).not.toContain(
    'NaN',
  )
})
