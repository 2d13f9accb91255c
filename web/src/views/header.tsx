import type { JSX } from 'preact'
import { useDashboard } from '../state/context.js'
import { modelsHref } from '../state/place.js'
import type { ServiceLink } from '../state/poller.js'
import { useStore } from '../state/store.js'
import { useStreamTrouble } from '../state/stream-trouble.js'
import { percentWatched } from '../state/coverage.js'
import { watchedShare } from '../state/site-coverage.js'
import { theme, toggleTheme } from '../state/theme.js'
import type { Camera, Status } from '../api/types.js'
import type { StreamState } from '../../../clients/typescript/src/index.js'
import { milliseconds, perSecond } from './format.js'
import { Icon } from './icon.js'

type HeaderProps = Readonly<{
  page: 'cameras' | 'models'
  /** Absent where the service takes no cameras. */
  onAdd: (() => void) | undefined
  onHelp: () => void
}>

/** Name, state and the figures one looks at first. */
export function Header({ page, onAdd, onHelp }: HeaderProps): JSX.Element {
  const { poller, results } = useDashboard()
  const status = useStore(poller.status)
  const link = useStore(poller.link)
  const cameras = useStore(poller.cameras)
  const trouble = useStreamTrouble()
  const ofResults = useStore(results.stream)
  const stream = trouble?.stream ?? ofResults
  const current = useStore(theme)
  const state = serviceState(link, status)
  return (
    <header class="header">
      <div class="brand">
        <Logo />
        <div>
          <h1>Gantry</h1>
          <p class="brand-sub">
            {status === undefined ? 'video analytics' : `${status.name} · v${status.version}`}
          </p>
        </div>
      </div>
      <nav class="pages" aria-label="Pages">
        <a href="#/" aria-current={page === 'cameras' ? 'page' : undefined}>
          Cameras
        </a>
        <a href={modelsHref()} aria-current={page === 'models' ? 'page' : undefined}>
          Models
        </a>
      </nav>
      <div class="pills">
        <span
          class={`pill ${state.tone}`}
          role="status"
          title={state.reasons.join('\n')}
          data-service={state.key}
        >
          <span class="dot" aria-hidden="true" />
          {state.text}
        </span>
        <span
          class={`pill quiet ${stream.state === 'open' && !trouble ? 'ok' : 'warn'}`}
          role="status"
          data-stream={trouble && stream.state === 'open' ? 'silent' : stream.state}
        >
          <span class="dot" aria-hidden="true" />
          {streamText(stream)}
        </span>
      </div>
      {onAdd === undefined ? <div class="figures" /> : <Figures cameras={cameras ?? []} />}
      <div class="actions">
        <button
          type="button"
          class="icon-button"
          onClick={toggleTheme}
          aria-label={`Switch to ${current === 'dark' ? 'light' : 'dark'} colours`}
          title="Colours (t)"
        >
          <Icon name={current === 'dark' ? 'sun' : 'moon'} />
        </button>
        <button
          type="button"
          class="icon-button"
          onClick={onHelp}
          aria-label="Keyboard help"
          title="Help (?)"
        >
          <Icon name="help" />
        </button>
        {onAdd !== undefined && (
          <button type="button" class="button primary" onClick={onAdd} title="Add camera (a)">
            <Icon name="add" />
            <span>Add camera</span>
          </button>
        )}
      </div>
    </header>
  )
}

function streamText({ state, trouble }: StreamState): string {
  if (state === 'open') return trouble ? 'Silent' : 'Live'
  return state === 'connecting' && !trouble ? 'Connecting' : 'Reconnecting'
}

function Figures({ cameras }: Readonly<{ cameras: readonly Camera[] }>): JSX.Element {
  const { coverage } = useDashboard()
  const known = useStore(coverage.cameras)
  const watched = watchedShare(
    known,
    cameras.map(({ id }) => id),
  )
  const live = cameras.filter(({ status }) => status.state === 'live')
  const fps = live.reduce((sum, { stats }) => sum + stats.inferredFps, 0)
  const worst = Math.max(...live.map(({ stats }) => stats.latencyMs?.p99 ?? 0), 0)
  return (
    <dl class="figures">
      <Figure name="cameras live" value={`${live.length}/${cameras.length}`} />
      <Figure name="frames/s" value={perSecond(fps)} />
      <Figure name="worst p99" value={worst === 0 ? '–' : milliseconds(worst)} />
      <Figure
        name="watched, 1 h"
        value={watched === undefined ? '–' : percentWatched(watched)}
        title="Share of the time of all cameras that was watched, of the last hour; the rest was blind"
      />
    </dl>
  )
}

type FigureProps = Readonly<{ name: string; value: string; title?: string }>

function Figure({ name, value, title }: FigureProps): JSX.Element {
  return (
    <div title={title}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

type Shown = Readonly<{
  key: string
  tone: 'ok' | 'warn' | 'bad' | 'idle'
  text: string
  reasons: readonly string[]
}>

/** Ready, ready with something amiss, not ready, or silent. */
export function serviceState(link: ServiceLink, status: Status | undefined): Shown {
  if (link.state === 'down') return { key: 'down', tone: 'bad', text: 'No answer', reasons: [] }
  if (link.state === 'locked') return { key: 'locked', tone: 'warn', text: 'Token needed', reasons: [] }
  if (status === undefined) return { key: 'loading', tone: 'idle', text: 'Loading', reasons: [] }
  if (!status.ready) return { key: 'not-ready', tone: 'bad', text: 'Not ready', reasons: status.reasons }
  const reasons = degradations(status)
  if (reasons.length > 0) return { key: 'degraded', tone: 'warn', text: 'Degraded', reasons }
  return { key: 'ready', tone: 'ok', text: 'Ready', reasons: [] }
}

/** What is amiss although the service is ready. */
function degradations(status: Status): string[] {
  return [
    ...status.reasons,
    ...status.engines
      // What is left stands among the reasons.
      .filter(({ state }) => !['ready', 'stopped', 'left'].includes(state))
      .map(({ index, state, reason }) => `Engine ${index} is ${state}${reason === '' ? '' : `: ${reason}`}`),
    ...status.sinks
      .filter(({ state }) => state === 'down')
      .map(({ name, reason }) => `${name} is down${reason === '' ? '' : `: ${reason}`}`),
    ...(status.cache.state === 'down'
      ? [`${status.cache.backend} cache is down: ${status.cache.reason}`]
      : []),
  ]
}

function Logo(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <path d="M6 26V10.5L10.5 6h11L26 10.5V26M6 10.5h20M16 10.5V16" />
      <rect x="11.5" y="16" width="9" height="7.5" rx="1.4" />
    </svg>
  )
}
