import 'uplot/dist/uPlot.min.css'
import { render } from 'preact'
import { DashboardProvider } from './state/context.js'
import { Dashboard } from './state/dashboard.js'
import './styles/index.css'
import { App } from './views/app.js'
import { followOverlayKeys } from './views/overlay-keys.js'

const root = document.getElementById('app')
if (root === null) throw new Error('the page has no place for the dashboard')
const dashboard = new Dashboard()
dashboard.start()
followOverlayKeys()
window.addEventListener('pagehide', () => dashboard.stop())
window.addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload()
})
render(
  <DashboardProvider value={dashboard}>
    <App />
  </DashboardProvider>,
  root,
)
