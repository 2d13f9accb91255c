import type { JSX } from 'preact'
import { memo } from './memo.js'
import { useRef } from 'preact/hooks'
import type { Camera } from '../api/types.js'
import { useDashboard } from '../state/context.js'
import { useStore } from '../state/store.js'
import { FrozenBadge, cameraName, StateBadge, StateNotice } from './camera-state.js'
import { milliseconds, perSecond, share } from './format.js'
import { Icon } from './icon.js'
import { LabelChips } from './label-chips.js'
import { usePlayer } from './use-player.js'

type TileProps = Readonly<{ camera: Camera; onOpen: (id: string) => void; onRemove: (id: string) => void }>

/** One camera of the grid: live picture, state, what it sees, what it costs. */
export const CameraTile = memo(function CameraTile({ camera, onOpen, onRemove }: TileProps): JSX.Element {
  const { id, status, stats } = camera
  const dashboard = useDashboard()
  const canvas = useRef<HTMLCanvasElement>(null)
  const hasPicture = usePlayer(canvas, id, status.state !== 'disabled')
  const enabled = status.state !== 'disabled'
  // Figures of a camera that is not live are those of its past.
  const live = status.state === 'live'
  const latency = live ? stats.latencyMs : null
  return (
    <li class="tile" data-camera={id} data-state={status.state}>
      <div class="screen">
        <canvas
          ref={canvas}
          class={hasPicture ? '' : 'blank'}
          role="img"
          aria-label={`Live picture of ${cameraName(camera)}`}
        />
        <StateNotice camera={camera} hasPicture={hasPicture} />
        <button
          type="button"
          class="tile-open"
          aria-label={`Enlarge ${cameraName(camera)}, ${status.state}, ${perSecond(stats.inferredFps)} frames per second`}
          onClick={() => onOpen(id)}
          onKeyDown={(event) => {
            if (event.key === 'Delete') onRemove(id)
          }}
        />
        <div class="tile-top">
          <span class="tile-name" title={id}>
            {cameraName(camera)}
          </span>
          {stats.frozen && <FrozenBadge />}
          <StateBadge state={status.state} />
        </div>
        <div class="tile-actions">
          <button
            type="button"
            class="icon-button on-picture"
            aria-label={`${enabled ? 'Switch off' : 'Switch on'} ${cameraName(camera)}`}
            title={enabled ? 'Switch off' : 'Switch on'}
            onClick={() => void dashboard.setEnabled(id, !enabled)}
          >
            <Icon name="power" />
          </button>
          <button
            type="button"
            class="icon-button on-picture"
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
  if (labels.length === 0) return null
  return (
    <div class="tile-seen">
      <LabelChips labels={labels} most={most} />
    </div>
  )
}
