import { Store } from './store.js'

/** Which page is shown; `undefined` while the address says nothing, so that the service decides. */
export type Place =
  Readonly<{ page: 'cameras' }> | Readonly<{ page: 'models'; model: string | undefined }> | undefined

/** What a hash such as `#/models/ppe` says. Other hashes are places within a page: they leave the page as it is. */
export function placeOf(hash: string, before: Place): Place {
  if (hash === '' || hash === '#') return undefined
  if (!hash.startsWith('#/')) return before
  const [page = '', ...rest] = hash.slice(2).split('/')
  if (page !== 'models') return { page: 'cameras' }
  return { page: 'models', model: decoded(rest.join('/')) }
}

/** Address of the models, or of one of them. */
export function modelsHref(model?: string): string {
  return model === undefined ? '#/models' : `#/models/${encodeURIComponent(model)}`
}

/** What was typed into the address need not be encoded well. */
function decoded(text: string): string | undefined {
  if (text === '') return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The page that the address names; follows the buttons of the browser. */
export const place = new Store<Place>(placeOf(location.hash, undefined))

window.addEventListener('hashchange', () => {
  const next = placeOf(location.hash, place.value)
  if (JSON.stringify(next) !== JSON.stringify(place.value)) place.set(next)
})
