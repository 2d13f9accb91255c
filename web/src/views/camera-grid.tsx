import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { useDashboard } from '../state/context.js'
import { useStore } from '../state/store.js'
import { CameraTile } from './camera-tile.js'
import { Icon } from './icon.js'
import { OverlaySwitches } from './overlay-switches.js'

type GridProps = Readonly<{
  onAdd: () => void
  onOpen: (id: string) => void
  onRemove: (id: string) => void
}>

/** All cameras; arrow keys move between them. */
export function CameraGrid({ onAdd, onOpen, onRemove }: GridProps): JSX.Element {
  const { poller } = useDashboard()
  const cameras = useStore(poller.cameras)
  const link = useStore(poller.link)
  const list = useRef<HTMLUListElement>(null)
  const [stop, setStop] = useState<string | undefined>(undefined)
  if (cameras === undefined) return link.state === 'down' ? <Unreachable /> : <Loading />
  if (cameras.length === 0) return <Empty onAdd={onAdd} />
  const tabStop = cameras.some(({ id }) => id === stop) ? stop : cameras[0]?.id
  return (
    <section id="cameras" class="cameras" aria-label="Cameras">
      <OverlaySwitches />
      <ul
        ref={list}
        class="grid"
        data-density={density(cameras.length)}
        onKeyDown={(event) => moveFocus(event, list.current)}
        onFocusIn={(event) => setStop(cameraAt(event.target))}
      >
        {cameras.map((camera) => (
          <CameraTile
            key={camera.id}
            camera={camera}
            tabStop={camera.id === tabStop}
            onOpen={onOpen}
            onRemove={onRemove}
          />
        ))}
      </ul>
    </section>
  )
}

/** How small tiles may get, by how many there are. */
function density(cameras: number): 'one' | 'few' | 'some' | 'many' {
  if (cameras === 1) return 'one'
  if (cameras <= 4) return 'few'
  return cameras <= 12 ? 'some' : 'many'
}

function cameraAt(target: EventTarget | null): string | undefined {
  return target instanceof Element
    ? target.closest<HTMLElement>('[data-camera]')?.dataset['camera']
    : undefined
}

/** Left and right go along the order, up and down to the tile above or below on the screen. */
function moveFocus(event: KeyboardEvent, list: HTMLUListElement | null): void {
  const tiles = [...(list?.querySelectorAll<HTMLElement>('.tile-open') ?? [])]
  const index = tiles.findIndex((tile) => tile === document.activeElement)
  if (index < 0) return
  const columns = columnCount(tiles)
  const target = targetIndex(event.key, index, columns, tiles.length)
  if (target === undefined) return
  event.preventDefault()
  tiles[target]?.focus()
}

function targetIndex(key: string, index: number, columns: number, length: number): number | undefined {
  const steps: Record<string, number> = {
    ArrowRight: index + 1,
    ArrowLeft: index - 1,
    ArrowDown: index + columns,
    ArrowUp: index - columns,
    Home: 0,
    End: length - 1,
  }
  const target = steps[key]
  return target === undefined || target < 0 || target >= length ? undefined : target
}

function columnCount(tiles: readonly HTMLElement[]): number {
  const top = tiles[0]?.getBoundingClientRect().top ?? 0
  const second = tiles.findIndex((tile) => tile.getBoundingClientRect().top > top + 4)
  return second < 0 ? tiles.length : second
}

function Loading(): JSX.Element {
  return (
    <section id="cameras" class="cameras" aria-busy="true" aria-label="Cameras">
      <p class="visually-hidden" role="status">
        Loading the cameras
      </p>
      <div class="grid" data-density="some" aria-hidden="true">
        {[1, 2, 3, 4, 5, 6].map((n) => (
          <div key={n} class="skeleton" />
        ))}
      </div>
    </section>
  )
}

function Unreachable(): JSX.Element {
  return (
    <section id="cameras" class="cameras">
      <div class="empty">
        <Icon name="link" />
        <h2>No connection to the service</h2>
        <p>
          Is it running? Start it with <code>npx gantry serve -c FILE</code> or <code>npm start</code>. This
          page connects by itself as soon as it answers.
        </p>
      </div>
    </section>
  )
}

function Empty({ onAdd }: Readonly<{ onAdd: () => void }>): JSX.Element {
  return (
    <section id="cameras" class="cameras">
      <div class="empty">
        <Icon name="camera" />
        <h2>No cameras yet</h2>
        <p>
          Add one by its URL, for example <code>rtsp://192.0.2.10/stream1</code>, a video file, or{' '}
          <code>push:</code> for a camera that sends its own pictures.
        </p>
        <button type="button" class="button primary" onClick={onAdd}>
          <Icon name="add" />
          <span>Add the first camera</span>
        </button>
      </div>
    </section>
  )
}
