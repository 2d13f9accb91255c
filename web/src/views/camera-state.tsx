import type { JSX } from 'preact'
import type { Camera, CameraState } from '../api/types.js'
import { causeTexts, percentWatched, pictureTroubles } from '../state/coverage.js'
import { useDashboard } from '../state/context.js'
import { serviceClock } from '../state/service-clock.js'
import { watchedShare } from '../state/site-coverage.js'
import { useStore } from '../state/store.js'
import { duration } from './format.js'
import { Icon, type IconName } from './icon.js'

export function cameraName({ id, config }: Camera): string {
  return config.name === undefined || config.name === '' ? id : config.name
}

const tones: Readonly<Record<CameraState, 'ok' | 'warn' | 'bad' | 'idle'>> = {
  live: 'ok',
  connecting: 'warn',
  stalled: 'warn',
  backoff: 'warn',
  disabled: 'idle',
  failed: 'bad',
}

const words: Readonly<Record<CameraState, string>> = {
  live: 'Live',
  connecting: 'Connecting',
  stalled: 'Stalled',
  backoff: 'Retrying',
  disabled: 'Off',
  failed: 'Failed',
}

const icons: Readonly<Record<CameraState, IconName>> = {
  live: 'camera',
  connecting: 'link',
  stalled: 'pause',
  backoff: 'link',
  disabled: 'power',
  failed: 'warning',
}

export function StateBadge({ state }: Readonly<{ state: CameraState }>): JSX.Element {
  return (
    <span class={`badge ${tones[state]}`} data-badge={state}>
      <span class="dot" aria-hidden="true" />
      {words[state]}
    </span>
  )
}

/** The camera is live as far as the service knows, and its picture here is an old one. */
function StaleBadge(): JSX.Element {
  return (
    <span class="badge warn" data-badge="stale" title="The camera is live, but no newer picture has come">
      <span class="dot" aria-hidden="true" />
      Old picture
    </span>
  )
}

/** The camera is live and its picture stands still: its encoder may be stuck. */
function FrozenBadge(): JSX.Element {
  return (
    <span class="badge warn" data-badge="frozen" title="The very same picture comes again and again">
      <span class="dot" aria-hidden="true" />
      frozen
    </span>
  )
}

export type PictureTroubleView = Readonly<{ cause: string; text: string; title: string }>

/** That the picture of a live camera shows nothing of its scene, in words; undefined where it does. */
export function usePictureTrouble({ id, status, stats }: Camera): PictureTroubleView | undefined {
  const { coverage } = useDashboard()
  const cameras = useStore(coverage.cameras)
  const { cause = null, since = '' } = cameras?.get(id)?.last ?? {}
  const trouble = cause === null ? undefined : pictureTroubles[cause]
  // A frozen one is told as such.
  const isShown = status.state === 'live' && !stats.frozen
  if (cause === null || trouble === undefined || !isShown) return undefined
  const blindFor = duration(serviceClock.now() - Date.parse(since))
  const watched = percentWatched(watchedShare(cameras, [id]) ?? 0)
  return {
    cause,
    text: causeTexts[cause],
    title: `${trouble}: blind for ${blindFor}. Watched in the last hour: ${watched}`,
  }
}

function TroubleBadge({ cause, text, title }: PictureTroubleView): JSX.Element {
  return (
    <span class="badge warn" data-badge={cause} title={title}>
      <span class="dot" aria-hidden="true" />
      {text}
    </span>
  )
}

/** What stands at the top of a picture about the camera. */
export function PictureBadges({
  camera,
  age,
}: Readonly<{ camera: Camera; age: string | undefined }>): JSX.Element {
  const trouble = usePictureTrouble(camera)
  return (
    <>
      {trouble !== undefined && age === undefined && <TroubleBadge {...trouble} />}
      {camera.stats.frozen && <FrozenBadge />}
      {age === undefined ? <StateBadge state={camera.status.state} /> : <StaleBadge />}
    </>
  )
}

type NoticeProps = Readonly<{ camera: Camera; hasPicture: boolean; age: string | undefined }>

/** Over the picture, when it is missing or old: what is the matter and what happens next. */
export function StateNotice({ camera, hasPicture, age }: NoticeProps): JSX.Element | null {
  const { state, reason, retryInMs } = camera.status
  if (age !== undefined) return <p class="notice stale">Picture of {age} ago</p>
  if (state === 'live') return hasPicture ? null : <p class="notice waiting">Waiting for the first picture</p>
  return (
    <div class={`notice ${tones[state]}`} title={reason}>
      <Icon name={icons[state]} />
      <strong class="notice-state">{words[state]}</strong>
      {reason !== '' && <p>{reason}</p>}
      {retryInMs !== undefined && state === 'backoff' && (
        <p class="notice-next">next attempt in {duration(retryInMs)}</p>
      )}
    </div>
  )
}
