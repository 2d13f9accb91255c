import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { useDashboard } from '../state/context.js'
import { modelsHref, place } from '../state/place.js'
import { useStore } from '../state/store.js'
import { toggleTheme } from '../state/theme.js'
import { AddCamera } from './add-camera.js'
import { Banner } from './banner.js'
import { CameraGrid } from './camera-grid.js'
import { CameraDetail } from './camera-detail.js'
import { FirstSteps } from './first-steps.js'
import { GpuPanel } from './gpu-panel.js'
import { Header } from './header.js'
import { Help } from './help.js'
import { ModelsPage } from './models-page.js'
import { Icon } from './icon.js'
import { RemoveCamera } from './remove-camera.js'
import { SightingsPanel } from './sightings-panel.js'
import { SystemPanel } from './system-panel.js'
import { Toasts } from './toasts.js'
import { TokenDialog } from './token-dialog.js'
import { TrendsPanel } from './trends-panel.js'
import { shortcutOf } from './shortcuts.js'

export type Open =
  Readonly<{ what: 'add' | 'help' }> | Readonly<{ what: 'camera' | 'remove'; id: string }> | undefined

const cameraPage = { page: 'cameras' } as const
const modelPage = { page: 'models', model: undefined } as const

/** The whole page. */
export function App(): JSX.Element {
  const { poller } = useDashboard()
  const link = useStore(poller.link)
  const status = useStore(poller.status)
  const asked = useStore(place)
  // Without an engine the service takes no cameras.
  const takesCameras = status === undefined || status.engines.length > 0
  const shown = asked ?? (takesCameras ? cameraPage : modelPage)
  const [open, setOpen] = useState<Open>(undefined)
  const close = (): void => setOpen(undefined)
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const shortcut = shortcutOf(event)
      if (shortcut === undefined) return
      event.preventDefault()
      if (shortcut === 'filter')
        document.querySelector<HTMLInputElement>('#sightings-filter, #models-filter')?.focus()
      else if (shortcut === 'theme') toggleTheme()
      else if (shortcut === 'cameras') location.hash = '#/'
      else if (shortcut === 'models') location.hash = modelsHref()
      else if (shortcut === 'help' || takesCameras) setOpen({ what: shortcut })
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [takesCameras])
  useEffect(() => {
    document.title = shown.page === 'models' ? `${shown.model ?? 'Models'} · Gantry` : 'Gantry'
  }, [shown])
  const add = takesCameras ? () => setOpen({ what: 'add' }) : undefined
  return (
    <>
      <a class="skip-link" href={`#${shown.page}`}>
        Skip to the {shown.page}
      </a>
      <Header page={shown.page} onAdd={add} onHelp={() => setOpen({ what: 'help' })} />
      <Banner />
      {shown.page === 'models' ? (
        <main>
          <ModelsPage selected={shown.model} />
        </main>
      ) : (
        <>
          {add !== undefined && <FirstSteps onAdd={add} />}
          <main class="layout">
            {takesCameras ? (
              <CameraGrid
                onAdd={() => setOpen({ what: 'add' })}
                onOpen={(id) => setOpen({ what: 'camera', id })}
                onRemove={(id) => setOpen({ what: 'remove', id })}
              />
            ) : (
              <NoEngines />
            )}
            <aside class="side" aria-label="Figures and detections">
              <TrendsPanel />
              <GpuPanel />
              <SightingsPanel onOpen={(id) => setOpen({ what: 'camera', id })} />
              <SystemPanel />
            </aside>
          </main>
        </>
      )}
      {open?.what === 'add' && <AddCamera onClose={close} />}
      {open?.what === 'help' && <Help onClose={close} />}
      {open?.what === 'camera' && (
        <CameraDetail
          id={open.id}
          onClose={close}
          onShow={(id) => setOpen({ what: 'camera', id })}
          onRemove={(id) => setOpen({ what: 'remove', id })}
        />
      )}
      {open?.what === 'remove' && <RemoveCamera id={open.id} onClose={close} />}
      {link.state === 'locked' && <TokenDialog />}
      <Toasts />
    </>
  )
}

/** In place of the cameras, which the service would refuse. */
function NoEngines(): JSX.Element {
  return (
    <section id="cameras" class="cameras">
      <div class="empty">
        <Icon name="model" />
        <h2>This service takes no cameras</h2>
        <p>
          It serves models alone: <code>engines: 0</code> in its pipeline file. With <code>engines: 1</code>{' '}
          it takes cameras.
        </p>
        <a class="button primary" href={modelsHref()}>
          See the models
        </a>
      </div>
    </section>
  )
}
