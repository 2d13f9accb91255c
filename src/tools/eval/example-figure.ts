import { readFile } from 'node:fs/promises'
import { escapeHtml } from '../report/html.js'
import type { DrawnBox, Example } from './examples.js'

/** Longest side of a picture in a report, and how much is kept of it: about 30 kB each. */
const sidePx = 480
const quality = 70

const colours: Readonly<Record<DrawnBox['kind'], string>> = {
  truth: '#3b82f6',
  right: '#22c55e',
  missed: '#f59e0b',
  alarm: '#ef4444',
}

/** A picture with its boxes, in itself: the picture is made small, the boxes are drawn over it. Empty where it cannot be read any more. */
export async function exampleFigure({ picture, size, label, weight, boxes }: Example): Promise<string> {
  const jpeg = await smallJpeg(picture.path).catch(() => undefined)
  if (jpeg === undefined) return ''
  const { widthPx, heightPx } = size
  const line = Math.max(widthPx, heightPx) / 240
  const drawn = boxes.toSorted((a, b) => Number(a.told) - Number(b.told)).map((box) => boxSvg(box, line))
  const isMiss = boxes.some(({ told, kind }) => told && kind === 'missed')
  const words = isMiss
    ? `${label} missed, ${(weight * 100).toFixed(1)} % of the picture`
    : `${label} ${weight.toFixed(2)}, not there`
  return (
    `<figure style="margin:0"><svg viewBox="0 0 ${widthPx} ${heightPx}" role="img" aria-label="${escapeHtml(words)}">` +
    `<image href="data:image/jpeg;base64,${jpeg.toString('base64')}" width="${widthPx}" height="${heightPx}" preserveAspectRatio="none"/>` +
    `${drawn.join('')}</svg><figcaption>${escapeHtml(picture.name)}<br>${escapeHtml(words)}</figcaption></figure>`
  )
}

async function smallJpeg(path: string): Promise<Buffer> {
  const { default: sharp } = await import('../../lifecycle/sharp.js')
  return sharp(await readFile(path), { failOn: 'none' })
    .autoOrient()
    .resize(sidePx, sidePx, { fit: 'inside', withoutEnlargement: true })
    .flatten({ background: '#727272' })
    .jpeg({ quality })
    .toBuffer()
}

function boxSvg({ kind, label, score, box: [x, y, w, h], told }: DrawnBox, line: number): string {
  const words = escapeHtml(`${kind}: ${label}${score === undefined ? '' : ` ${score.toFixed(2)}`}`)
  const dashes = kind === 'truth' ? ` stroke-dasharray="${4 * line} ${2 * line}"` : ''
  return (
    `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${w.toFixed(1)}" height="${h.toFixed(1)}" fill="none"` +
    ` stroke="${colours[kind]}" stroke-width="${(told ? 2 * line : line).toFixed(2)}"${dashes}><title>${words}</title></rect>`
  )
}
