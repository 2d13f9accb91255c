import { modelText, onCardTexts, type Part, parts } from './plan.js'
import type { Line } from './results.js'

type Row = Readonly<{ question: string; figure: string; goal: string; isMissed: boolean; part: Part }>

const titles: Readonly<Record<Part, string>> = {
  ceilings: 'What the card gives',
  scheduler: "The cameras' way, saturated",
  service: 'Cameras',
  server: 'Model server',
  faults: 'Failures',
}
const goals = {
  ofBare: 0.95,
  busyPercent: 85,
  ofNaive: 20,
  serverOfBare: 0.9,
  firstFrameMs: 5_000,
  p99Ms: 60,
}
/** The load that has a goal of its own. */
const hardest = { cameras: 64, fps: 15 }
/** Longest cell of docs/benchmarks.md. */
const cellLength = 160

/** The results as docs/benchmarks.md shows them, a heading for each part and `|` for every cell. */
export function tableOf(lines: readonly Line[]): string {
  const rows = [...plainRows(lines), ...derivedRows(lines)]
  const card = lines[0]?.card ?? ''
  const text = parts.flatMap((part) => {
    const own = rows.filter((row) => row.part === part)
    if (own.length === 0) return []
    return [`| **${titles[part]}** | | | | |`, ...own.map((row) => rowText(row, card))]
  })
  return [
    '| question | figure | goal | command | machine |',
    '| --- | --- | --- | --- | --- |',
    ...text,
    '',
  ].join('\n')
}

function rowText({ question, figure, goal, isMissed, part }: Row, card: string): string {
  const wanted = isMissed ? `${goal} (**missed**)` : goal
  const cells = [question, figure, wanted, `\`npm run bench:gpu -- ${part}\``, card]
  return `| ${cells.map(cell).join(' | ')} |`
}

function cell(text: string): string {
  const short = text.length > cellLength ? `${text.slice(0, cellLength - 4)} ...` : text
  return short.replaceAll('|', '\\|').replaceAll('\n', ' ')
}

/** The lines that differ in their column alone make one row. */
function plainRows(lines: readonly Line[]): Row[] {
  const byRow = new Map<string, Line[]>()
  for (const line of lines) byRow.set(line.row, [...(byRow.get(line.row) ?? []), line])
  return [...byRow].map(([row, own]) => {
    const { part } = own[0]!
    const columns = own.flatMap(({ column }) => column ?? [])
    const question = columns.length === 0 ? row : `${row}: ${columns.join(' / ')}`
    return {
      part,
      question,
      figure: own.map((line) => figureOf(line, lines)).join(' / '),
      ...goalOf(own, lines),
    }
  })
}

function figureOf(line: Line, all: readonly Line[]): string {
  if (line.error !== undefined) return `failed: ${line.error}`
  switch (line.part) {
    case 'ceilings':
      return `${number(line, 'perSecond')} ${line.unit}`
    case 'scheduler':
      return listed(
        `${number(line, 'perSecond')} ${line.unit}`,
        has(line, 'ofBare') && `${number(line, 'ofBare')} × bare`,
        ofNaive(line, all) !== undefined && `${shown(ofNaive(line, all)!)} × naive`,
        ...ofCard(line),
      )
    case 'service':
      return listed(
        has(line, 'cameras') && mostOf(line),
        has(line, 'perSecond') && `${number(line, 'perSecond')} of ${number(line, 'offered')} frames/s`,
        has(line, 'p99Ms') && `p50 ${number(line, 'p50Ms')} ms, p99 ${number(line, 'p99Ms')} ms`,
        has(line, 'decoderCoresPerCamera') && ofDecoder(line),
        has(line, 'decodedBy') && `decoded: ${String(line['decodedBy'])}`,
        ...ofCard(line),
      )
    case 'server':
      return listed(
        `${number(line, 'perSecond')} ${line.unit}`,
        ofBare(line, all) !== undefined && `${shown(ofBare(line, all)!)} × bare`,
        `p99 ${number(line, 'p99Ms')} ms`,
      )
    case 'faults':
      return listed(
        ...Object.entries(faultWords).map(
          ([key, word]) => has(line, key) && `${word} ${inSeconds(line, key)}`,
        ),
        has(line, 'perSecond') && `${number(line, 'perSecond')} frames/s`,
        has(line, 'ended') && `ended with ${String(line['ended'])}`,
        has(line, 'shed') && `${number(line, 'shed')} frames failed`,
        has(line, 'provider') && `on ${String(line['provider'])}`,
        has(line, 'backOnCard') && `card back ${String(line['backOnCard'])}`,
        has(line, 'reason') && String(line['reason']),
      )
    default:
      return line.part satisfies never
  }
}

function ofDecoder(line: Line): string {
  return `${number(line, 'decoderCoresPerCamera')} core and ${number(line, 'decoderMiBPerCamera')} MiB a decoder`
}

/** Held, and how near the search came. */
function mostOf(line: Line): string {
  const [cameras, exactTo] = [Number(line['cameras']), Number(line['exactTo'])]
  if (cameras === Number(line['most'])) return `${cameras} or more`
  return exactTo === 1 ? String(cameras) : `${cameras} to ${cameras + exactTo - 1}`
}

const faultWords = {
  toldMs: 'told after',
  notReadyMs: 'not ready after',
  readyMs: 'ready after',
  backMs: 'engine back after',
  framesMs: 'frames after',
  backOnCardMs: 'on the card again after',
} as const

function ofCard(line: Line): readonly (string | false)[] {
  return [
    has(line, 'gpuPercent') && `GPU ${number(line, 'gpuPercent')} %`,
    has(line, 'joulesPer1000') && `${number(line, 'joulesPer1000')} J/1,000`,
    has(line, 'gpuMiB') && `${number(line, 'gpuMiB')} MiB`,
  ]
}

function goalOf(own: readonly Line[], all: readonly Line[]): Pick<Row, 'goal' | 'isMissed'> {
  const [line] = own
  const none = { goal: '-', isMissed: false }
  switch (line!.part) {
    case 'scheduler': {
      const { ofBare, busyPercent } = goals
      const isMissed = under(line!, 'ofBare', ofBare) || under(line!, 'gpuPercent', busyPercent)
      return { goal: `≥ ${ofBare} × bare, GPU ≥ ${busyPercent} %`, isMissed }
    }
    case 'service': {
      if (!line!.row.includes(`${hardest.cameras} cameras at ${hardest.fps} fps`)) return none
      const { cameras, fps } = hardest
      const late = Number(line!['p99Ms']) > goals.p99Ms
      // Cameras are not at their rate to the frame.
      const isMissed = late || under(line!, 'perSecond', 0.995 * cameras * fps)
      return { goal: `${cameras * fps} frames/s, p99 ≤ ${goals.p99Ms} ms`, isMissed }
    }
    case 'server': {
      const ratios = own.flatMap((each) => ofBare(each, all) ?? [])
      const isMissed = ratios.some((ratio) => ratio < goals.serverOfBare)
      return ratios.length === 0 ? none : { goal: `≥ ${goals.serverOfBare} × bare`, isMissed }
    }
    default:
      return none
  }
}

/** What follows from several lines. */
function derivedRows(lines: readonly Line[]): Row[] {
  const rows: Row[] = []
  const ratios = lines.flatMap((line) => (line.part === 'scheduler' ? (ofNaive(line, lines) ?? []) : []))
  if (ratios.length > 0) {
    const best = Math.max(...ratios)
    const isMissed = best < goals.ofNaive
    const figure = `${shown(best)} ×`
    const question = 'most over one frame at a time in fp32 of the same size'
    rows.push({ part: 'scheduler', question, figure, goal: `≥ ${goals.ofNaive} ×`, isMissed })
  }
  const first = lines.flatMap((line) => (has(line, 'firstFrameMs') ? Number(line['firstFrameMs']) : []))
  if (first.length > 0) {
    const slowest = Math.max(...first)
    const question = `first frame after the start, slowest of ${first.length}`
    const figure = `${shown(slowest / 1e3)} s`
    rows.push({ part: 'service', question, figure, goal: '≤ 5 s', isMissed: slowest > goals.firstFrameMs })
  }
  for (const card of lines.filter(({ row }) => row.includes(onCardTexts.decoding))) {
    const text = card.row.endsWith(onCardTexts.scaling) ? onCardTexts.scaling : onCardTexts.decoding
    const plain = lines.find(({ row }) => `${row}${text}` === card.row)
    const cameras = Number(/(\d+) camera/.exec(card.row)?.[1])
    if (plain === undefined || !has(plain, 'gpuMiB') || !has(card, 'gpuMiB')) continue
    if (Number(card['hwaccelFallbacks']) > 0) continue
    const mib = (Number(card['gpuMiB']) - Number(plain['gpuMiB'])) / cameras
    const question = `memory of the card for each camera decoded there${text === onCardTexts.scaling ? ' and scaled' : ''}`
    rows.push({ part: 'service', question, figure: `${shown(mib)} MiB`, goal: '-', isMissed: false })
  }
  return rows
}

/** Over one frame at a time in fp32 at the same size. */
function ofNaive(line: Line, all: readonly Line[]): number | undefined {
  const size = /\b(\d+ x \d+)\b/.exec(line.row)?.[1]
  const naive = all.find(({ row }) => row.startsWith('naive') && row.includes(`fp32 ${size}`))
  return naive === undefined ? undefined : ratio(line, naive)
}

/** Of the server: over one bare session of the largest batch. */
function ofBare(line: Line, all: readonly Line[]): number | undefined {
  const model = /(fp\d+)(?: (\d+) x)/.exec(line.row)
  const text = model && modelText(`${model[1]}_${model[2]}` as Parameters<typeof modelText>[0])
  const bare = all.find(({ name }) => name === `bare onnxruntime-node, ${text}, batch 32`)
  return bare === undefined ? undefined : ratio(line, bare)
}

function ratio(one: Line, other: Line): number | undefined {
  return has(one, 'perSecond') && has(other, 'perSecond')
    ? Number(one['perSecond']) / Number(other['perSecond'])
    : undefined
}

function has(line: Line, figure: string): boolean {
  return line[figure] !== undefined && line[figure] !== null
}

function under(line: Line, figure: string, least: number): boolean {
  return has(line, figure) && Number(line[figure]) < least
}

function number(line: Line, figure: string): string {
  return shown(Number(line[figure]))
}

function inSeconds(line: Line, figure: string): string {
  return `${shown(Number(line[figure]) / 1e3)} s`
}

function shown(value: number): string {
  return value.toFixed(value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2)
}

function listed(...texts: readonly (string | false)[]): string {
  return texts.filter((text) => text !== false).join(', ')
}
