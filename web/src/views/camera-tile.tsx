import type { JSX } from 'preact'
import { memo } from './memo.js'
import { useRef } from 'preact/hooks'
import type { Camera } from '../api/types.js'
import { useDashboard } from '../state/context.js'
import { overlay } from '../state/overlay.js'
import { useStore } from '../state/store.js'
import { cameraName, PictureBadges, StateNotice, usePictureTrouble } from './camera-state.js'
import { milliseconds, perSecond, share } from './format.js'
import { Icon } from './icon.js'
import { LabelChips } from './label-chips.js'
import { usePictureAge } from './use-picture-age.js'
import { usePlayer } from './use-player.js'

type TileProps = Readonly<{
  camera: Camera
  /** Whether Tab comes by here: of all tiles it does by one, arrow keys go to the others. */
  tabStop: boolean
  onOpen: (id: string) => void
  onRemove: (id: string) => void
}>

/** One camera of the grid: live picture, state, what it sees, what it costs. */
export const CameraTile = memo(function CameraTile({
  camera,
  tabStop,
  onOpen,
  onRemove,
}: TileProps): JSX.Element {
  const { id, status, stats } = camera
  const dashboard = useDashboard()
  const canvas = useRef<HTMLCanvasElement>(null)
  const hasPicture = usePlayer(canvas, id, status.state !== 'disabled')
  const age = usePictureAge(camera)
  const trouble = usePictureTrouble(camera)
  const tabIndex = tabStop ? 0 : -1
  const enabled = status.state !== 'disabled'
  // Figures of a camera that is not live are those of its past.
  const live = status.state === 'live'
  const latency = live ? stats.latencyMs : null
  return (
    <li class="tile" data-camera={id} data-state={age === undefined ? status.state : 'stale'}>
      <div class="screen">
        <canvas
          ref={canvas}
          class={hasPicture ? '' : 'blank'}
          role="img"
          aria-label={`${age === undefined ? 'Live picture' : `Picture of ${age} ago`} of ${cameraName(camera)}`}
        />
        <StateNotice camera={camera} hasPicture={hasPicture} age={age} />
        <button
          type="button"
          class="tile-open"
          tabIndex={tabIndex}
          aria-label={openLabel(camera, age, trouble?.text)}
          onClick={() => onOpen(id)}
          onKeyDown={(event) => {
            if (event.key === 'Delete') onRemove(id)
          }}
        />
        <div class="tile-top">
          <span class="tile-name" title={id}>
            {cameraName(camera)}
          </span>
          <PictureBadges camera={camera} age={age} />
        </div>
        <div class="tile-actions">
          <button
            type="button"
            class="icon-button on-picture"
            tabIndex={tabIndex}
            aria-label={`${enabled ? 'Switch off' : 'Switch on'} ${cameraName(camera)}`}
            title={enabled ? 'Switch off' : 'Switch on'}
            onClick={() => void dashboard.setEnabled(id, !enabled)}
          >
            <Icon name="power" />
          </button>
          <button
            type="button"
            class="icon-button on-picture"
            tabIndex={tabIndex}
            aria-label={`Remove ${cameraName(camera)}`}
            title="Remove (Delete)"
            onClick={() => onRemove(id)}
          >
            <Icon name="trash" />
          </button>
        </div>
        {live && <SeenNow id={id} most={4} />}
      </div>
      <dl class="tile-stats">
        <Stat
          name="fps"
          value={live ? perSecond(stats.inferredFps) : '–'}
          title="Frames analysed per second"
        />
        <Stat
          name="p50"
          value={latency === null ? '–' : milliseconds(latency.p50)}
          title="Capture to publish, median"
        />
        <Stat
          name="p99"
          value={latency === null ? '–' : milliseconds(latency.p99)}
          title="Capture to publish, 99 of 100 are faster"
        />
        <Stat
          name="decode"
          value={live ? share(stats.decoderCpuShare) : '–'}
          title="Share of one processor core the decoder uses"
        />
      </dl>
    </li>
  )
})

function openLabel(camera: Camera, age: string | undefined, trouble: string | undefined): string {
  const { status, stats } = camera
  const state = age === undefined ? status.state : `picture of ${age} ago`
  const why = status.reason === '' ? '' : `: ${status.reason}`
  const shows = trouble === undefined ? '' : `, ${trouble}`
  return `Enlarge ${cameraName(camera)}, ${state}${why}${shows}, ${perSecond(stats.inferredFps)} frames per second`
}

function Stat({ name, value, title }: Readonly<{ name: string; value: string; title: string }>): JSX.Element {
  return (
    <div title={title}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

/** What is in the picture that is shown; on its own, so that it can change without the tile. */
export function SeenNow({ id, most }: Readonly<{ id: string; most: number }>): JSX.Element | null {
  const { pictures } = useDashboard()
  const labels = useStore(pictures.player(id).seen)
  const { names } = useStore(overlay)
  if (labels.length === 0 || !names) return null
  return (
    <div class="tile-seen">
      <LabelChips labels={labels} most={most} />
    </div>
  )
}
