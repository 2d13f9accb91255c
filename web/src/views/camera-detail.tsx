import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Camera, DecodeMode, DecodePlace } from '../api/types.js'
import { useDashboard } from '../state/context.js'
import { useStore } from '../state/store.js'
import { CameraPicture, FullSizeSwitch, LiveBeside, SavePicture } from './camera-picture.js'
import { cameraName, StateBadge } from './camera-state.js'
import { CoverageTimeline } from './coverage-timeline.js'
import { Dialog } from './dialog.js'
import { EditCamera } from './edit-camera.js'
import { count, duration, milliseconds, moment, perSecond, share, timeZone } from './format.js'
import { FrameFates } from './frame-fates.js'
import { Icon } from './icon.js'
import { OverlaySwitches } from './overlay-switches.js'
import { useEachSecond } from '../state/seconds.js'
import { serviceClock } from '../state/service-clock.js'

type DetailProps = Readonly<{
  id: string
  onClose: () => void
  onShow: (id: string) => void
  onRemove: (id: string) => void
}>

/** One camera, large, with all that is known of it. Left and right arrows go to its neighbours. */
export function CameraDetail({ id, onClose, onShow, onRemove }: DetailProps): JSX.Element | null {
  const { poller } = useDashboard()
  const cameras = useStore(poller.cameras) ?? []
  const index = cameras.findIndex((camera) => camera.id === id)
  const camera = cameras[index]
  const [isFull, setIsFull] = useState(false)
  const neighbour = (step: number): string =>
    cameras[(index + step + cameras.length) % cameras.length]?.id ?? id
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      // Inside of the form arrows move something else.
      if (event.target instanceof Element && event.target.closest('form') !== null) return
      if (event.key === 'ArrowLeft') onShow(neighbour(-1))
      else if (event.key === 'ArrowRight') onShow(neighbour(1))
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  })
  useEffect(() => {
    if (camera === undefined) onClose()
  }, [camera, onClose])
  if (camera === undefined) return null
  return (
    <Dialog
      title={cameraName(camera)}
      onClose={onClose}
      class="detail"
      tools={
        cameras.length > 1 && (
          <Steps place={`${index + 1} of ${cameras.length}`} onStep={(step) => onShow(neighbour(step))} />
        )
      }
    >
      <div class="detail-body">
        <div>
          <CameraPicture key={id} camera={camera} onFull={setIsFull} />
          <OverlaySwitches>
            <FullSizeSwitch />
            <SavePicture camera={camera} />
          </OverlaySwitches>
          <CoverageTimeline key={id} id={id} />
        </div>
        <div class="detail-side">
          {isFull && <LiveBeside key={id} camera={camera} />}
          <Facts camera={camera} />
          <Controls camera={camera} onRemove={onRemove} />
        </div>
      </div>
    </Dialog>
  )
}

type StepsProps = Readonly<{ place: string; onStep: (step: number) => void }>

function Steps({ place, onStep }: StepsProps): JSX.Element {
  return (
    <span class="steps">
      <button
        type="button"
        class="icon-button"
        aria-label="Camera before"
        title="Camera before (←)"
        onClick={() => onStep(-1)}
      >
        <Icon name="left" />
      </button>
      {place}
      <button
        type="button"
        class="icon-button"
        aria-label="Next camera"
        title="Next camera (→)"
        onClick={() => onStep(1)}
      >
        <Icon name="right" />
      </button>
    </span>
  )
}

const decodedAs: Readonly<Record<DecodeMode, string>> = {
  full: 'every picture',
  fast: 'every picture, filtered where needed',
  keyframes: 'key frames alone',
}

const decodedBy: Readonly<Record<DecodePlace, string>> = {
  software: 'software',
  'cuda-scaled': 'GPU, scaled there',
  cuda: 'GPU',
  vaapi: 'vaapi',
  auto: 'an accelerator',
}

function keptWhere({ node, origin, persist }: Camera): string {
  if (node !== undefined) return 'in the cluster'
  if (origin === 'file') return 'in the pipeline file'
  return persist ? 'over a restart' : 'until the next restart'
}

function Facts({ camera }: Readonly<{ camera: Camera }>): JSX.Element {
  const { config, status, stats } = camera
  return (
    <>
      <dl class="facts">
        <Fact name="State">
          <StateBadge state={status.state} /> <Since sinceMs={status.sinceMs} />
        </Fact>
        {status.reason !== '' && <Fact name="Reason">{status.reason}</Fact>}
        <Fact name="Id">{camera.id}</Fact>
        {camera.node !== undefined && <Fact name="Node">{camera.node ?? 'none yet'}</Fact>}
        <Fact name="Source">
          <code>{config.url}</code>
        </Fact>
        {config.analyseUrl !== undefined && (
          <Fact name="Analysed stream">
            <code>{config.analyseUrl}</code>
          </Fact>
        )}
        {config.username !== undefined && <Fact name="Login">set, and not shown</Fact>}
        <Fact name="Picture">
          {stats.source === null ? '–' : `${stats.source.widthPx} × ${stats.source.heightPx}`}
        </Fact>
        <Fact name="Analysed">
          {perSecond(stats.inferredFps)} of {perSecond(stats.receivedFps)} frames/s, at most{' '}
          {config.sampleFps}
        </Fact>
        <Fact name="Latency">
          {stats.latencyMs === null
            ? '–'
            : `p50 ${milliseconds(stats.latencyMs.p50)}, p99 ${milliseconds(stats.latencyMs.p99)}`}
        </Fact>
        <Fact name="Decoder">
          {share(stats.decoderCpuShare)} of a core, {decoderText(camera)}, {count(status.attempts)}{' '}
          {status.attempts === 1 ? 'start' : 'starts'}
        </Fact>
        {status.decode !== undefined && (
          <Fact name="Decoded">
            {status.decode.polledFps === undefined
              ? decodedAs[status.decode.mode]
              : `snapshot, polled at ${status.decode.polledFps} fps`}
            {config.decode === 'auto' &&
              status.decode.polledFps === undefined &&
              ` (auto: ${status.decode.reason})`}
            {status.decode.track !== undefined && `, ${status.decode.track}`}
          </Fact>
        )}
        <Fact name="Kept">{keptWhere(camera)}</Fact>
      </dl>
      <FrameFates counts={stats.frames} />
    </>
  )
}

/** For how long, by the clock of the service, and since when. */
function Since({ sinceMs }: Readonly<{ sinceMs: number }>): JSX.Element {
  const text = useEachSecond(() => {
    const nowMs = serviceClock.now()
    return `for ${duration(nowMs - sinceMs)}, since ${moment(sinceMs, nowMs)}`
  })
  return (
    <span class="muted" title={`Time zone: ${timeZone(sinceMs)}`}>
      {text}
    </span>
  )
}

/** Where it is decoded, and why not where the settings ask for; what these ask for while it is not. */
function decoderText({ config, status: { decode } }: Camera): string {
  if (decode === undefined) return config.hwaccel === 'none' ? 'software' : config.hwaccel
  const { by, byReason } = decode
  return byReason === '' ? decodedBy[by] : `${decodedBy[by]} (${byReason})`
}

function Fact({ name, children }: Readonly<{ name: string; children: ComponentChildren }>): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

type ControlsProps = Readonly<{ camera: Camera; onRemove: (id: string) => void }>

function Controls({ camera, onRemove }: ControlsProps): JSX.Element {
  const dashboard = useDashboard()
  const enabled = camera.status.state !== 'disabled'
  const [editing, setEditing] = useState(false)
  return (
    <div class="detail-controls">
      {editing && <EditCamera camera={camera} onClose={() => setEditing(false)} />}
      <button type="button" class="button" onClick={() => setEditing(true)}>
        <span>Edit</span>
      </button>
      <button type="button" class="button" onClick={() => void dashboard.setEnabled(camera.id, !enabled)}>
        <Icon name="power" />
        <span>{enabled ? 'Switch off' : 'Switch on'}</span>
      </button>
      <button type="button" class="button danger" onClick={() => onRemove(camera.id)}>
        <Icon name="trash" />
        <span>Remove</span>
      </button>
    </div>
  )
}
