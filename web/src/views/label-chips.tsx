import type { JSX } from 'preact'
import { labelColor } from '../../../src/vision/label-colors.js'
import { labelName } from '../../../src/vision/label-name.js'
import type { LabelCount } from '../state/sightings.js'

type ChipsProps = Readonly<{
  labels: readonly LabelCount[]
  most?: number
  onPick?: (label: string) => void
  /** Of the chip of that number, counted from 0, when chips are buttons. */
  tabIndex?: (chip: number) => number
}>

/** Labels with how many there are, each with the colour its boxes have. */
export function LabelChips({ labels, most = 6, onPick, tabIndex }: ChipsProps): JSX.Element {
  const shown = labels.slice(0, most)
  const hidden = labels.length - shown.length
  return (
    <span class="chips">
      {shown.map(({ label, count, bestScore }, chip) => (
        <Chip
          key={label}
          label={label}
          text={`${count} ${labelName(label)}`}
          title={`best score ${Math.round(bestScore * 100)} %`}
          onPick={onPick}
          tabIndex={tabIndex?.(chip)}
        />
      ))}
      {hidden > 0 && <span class="chip more">+{hidden}</span>}
    </span>
  )
}

type ChipProps = Readonly<{
  label: string
  text: string
  title: string
  onPick: ((label: string) => void) | undefined
  tabIndex: number | undefined
}>

function Chip({ label, text, title, onPick, tabIndex }: ChipProps): JSX.Element {
  const content = (
    <>
      <Swatch label={label} />
      <span class="chip-text">{text}</span>
    </>
  )
  if (onPick === undefined)
    return (
      <span class="chip" title={title}>
        {content}
      </span>
    )
  return (
    <button
      type="button"
      class="chip"
      tabIndex={tabIndex}
      title={`Show only ${labelName(label)}`}
      onClick={() => onPick(label)}
    >
      {content}
    </button>
  )
}

/** The colour as an SVG fill: the content security policy allows no style attributes. */
export function Swatch({ label }: Readonly<{ label: string }>): JSX.Element {
  return (
    <svg class="swatch" viewBox="0 0 8 8" aria-hidden="true" focusable="false">
      <rect width="8" height="8" rx="2" fill={labelColor(label)} />
    </svg>
  )
}
