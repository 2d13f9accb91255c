import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { api } from '../api/client.js'
import type { Camera } from '../api/types.js'
import { useDashboard } from '../state/context.js'
import { fullSize, toggleFullSize } from '../state/full-size.js'
import { overlay } from '../state/overlay.js'
import { serviceClock } from '../state/service-clock.js'
import { useStore } from '../state/store.js'
import { cameraName, PictureBadges, StateNotice } from './camera-state.js'
import { SeenNow } from './camera-tile.js'
import { moment } from './format.js'
import { Icon } from './icon.js'
import { saveFile } from './save-file.js'
import { isTyping } from './shortcuts.js'
import { usePictureAge } from './use-picture-age.js'
import { usePlayer } from './use-player.js'
import { useSnapshots, type Snapshots } from './use-snapshots.js'

type PictureProps = Readonly<{
  camera: Camera
  /** Told whether it is in the resolution of the camera, picture by picture, with the live one below it. */
  onFull: (isFull: boolean) => void
}>

/** The enlarged camera: in its own resolution where that is more than the model saw, else live. */
export function CameraPicture({ camera, onFull }: PictureProps): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null)
  const hasPicture = usePlayer(canvas, camera.id, camera.status.state !== 'disabled')
  const age = usePictureAge(camera)
  const player = useDashboard().pictures.player(camera.id)
  const isScaled = useStore(player.isScaled)
  // Of a sub-stream: nobody knows here how large the main one is.
  const opensSession = camera.config.analyseUrl !== undefined
  const isWanted = useStore(fullSize) && camera.status.state === 'live' && (isScaled || opensSession)
  const { boxes } = useStore(overlay)
  const liveMs = () => player.capturedAtMs
  const snapshots = useSnapshots(camera.id, isWanted, { overlay: boxes, opensSession, liveMs })
  const isFull = snapshots.url !== undefined
  useEffect(() => {
    onFull(isFull)
    return () => onFull(false)
  }, [isFull, onFull])
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === 'f' && !event.ctrlKey && !event.metaKey && !isTyping(event.target)) toggleFullSize()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  return (
    <div class="screen large" data-state={age === undefined ? camera.status.state : 'stale'}>
      <canvas
        ref={canvas}
        class={hasPicture ? '' : 'blank'}
        role="img"
        aria-label={`${age === undefined ? 'Live picture' : `Picture of ${age} ago`} of ${cameraName(camera)}`}
      />
      {snapshots.url !== undefined && (
        <img class="full-size" src={snapshots.url} alt={`Picture of ${cameraName(camera)} in full size`} />
      )}
      {isWanted && <FullSizeNote {...snapshots} />}
      <StateNotice camera={camera} hasPicture={hasPicture} age={age} />
      {age !== undefined && (
        <div class="tile-top">
          <span />
          <PictureBadges camera={camera} age={age} />
        </div>
      )}
      {camera.status.state === 'live' && <SeenNow id={camera.id} most={8} />}
    </div>
  )
}

/** What moves, beside the large picture that is new every second or two. */
export function LiveBeside({ camera }: Readonly<{ camera: Camera }>): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null)
  const hasPicture = usePlayer(canvas, camera.id, true)
  return (
    <figure class="live-beside">
      <div class="screen">
        <canvas
          ref={canvas}
          class={hasPicture ? '' : 'blank'}
          role="img"
          aria-label={`Live picture of ${cameraName(camera)}`}
        />
        <StateNotice camera={camera} hasPicture={hasPicture} age={undefined} />
      </div>
      <figcaption>Live, as the model sees it</figcaption>
    </figure>
  )
}

export function FullSizeSwitch(): JSX.Element {
  const isOn = useStore(fullSize)
  return (
    <button
      type="button"
      class="switch"
      aria-pressed={isOn}
      aria-keyshortcuts="f"
      title="Pictures in the resolution of the camera, one after the other, in place of the live ones that the model saw; off, a thin network has less to carry (f)"
      onClick={toggleFullSize}
    >
      <Icon name={isOn ? 'eye' : 'eye-off'} />
      Full size <kbd aria-hidden="true">f</kbd>
    </button>
  )
}

/** A file of the newest picture, in the resolution of the camera where that can be had, with the boxes that are shown. */
export function SavePicture({ camera }: Readonly<{ camera: Camera }>): JSX.Element {
  const dashboard = useDashboard()
  const { boxes } = useStore(overlay)
  const [isTaking, setIsTaking] = useState(false)
  const save = async (): Promise<void> => {
    setIsTaking(true)
    try {
      const taken = await api.snapshot(camera.id, { overlay: boxes })
      if (taken !== 'known') saveFile(taken.blob, `${camera.id} ${fileTime(taken.facts.capturedAt)}.jpg`)
    } catch (error) {
      const why = error instanceof Error ? error.message : 'no picture came'
      dashboard.toast('failed', `The picture was not saved: ${why}`)
    }
    setIsTaking(false)
  }
  return (
    <button
      type="button"
      class="switch"
      disabled={isTaking || camera.status.state !== 'live'}
      title="A JPEG of the newest picture, in the resolution of the camera"
      onClick={() => void save()}
    >
      <Icon name="save" />
      Save picture
    </button>
  )
}

/** No colons: not every file system takes them. */
function fileTime(capturedAt: string | undefined): string {
  return (capturedAt ?? '').replaceAll(':', '-')
}

/** Of when and how large the picture is, or why the live one is shown. */
function FullSizeNote({ facts, trouble }: Snapshots): JSX.Element | null {
  if (facts === undefined && trouble === '') return null
  const taken =
    facts?.capturedAt === undefined ? '' : `, of ${moment(Date.parse(facts.capturedAt), serviceClock.now())}`
  return (
    <p class="full-size-note" role="status">
      {facts === undefined ? trouble : `${facts.size}${taken}`}
    </p>
  )
}
