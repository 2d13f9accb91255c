import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Dashboard } from './dashboard.js'

const context = createContext<Dashboard | undefined>(undefined)

export const DashboardProvider = context.Provider

export function useDashboard(): Dashboard {
  const dashboard = useContext(context)
  if (dashboard === undefined) throw new Error('a view is outside of the dashboard')
  return dashboard
}
