import { Store } from './store.js'

export type Theme = 'dark' | 'light'

const key = 'gantry.theme'
const prefersLight = matchMedia('(prefers-color-scheme: light)')

/** As the system has it, until the person chooses. */
export const theme = new Store<Theme>(chosenTheme() ?? systemTheme())

prefersLight.addEventListener('change', () => {
  if (chosenTheme() === undefined) apply(systemTheme())
})
apply(theme.value)

export function toggleTheme(): void {
  const next = theme.value === 'dark' ? 'light' : 'dark'
  localStorage.setItem(key, next)
  apply(next)
}

function apply(next: Theme): void {
  document.documentElement.dataset['theme'] = next
  theme.set(next)
}

function systemTheme(): Theme {
  return prefersLight.matches ? 'light' : 'dark'
}

function chosenTheme(): Theme | undefined {
  const saved = localStorage.getItem(key)
  return saved === 'dark' || saved === 'light' ? saved : undefined
}
