import { type SiteName } from '../scenario/schema.js'
import { dock } from './dock.js'
import { gate } from './gate.js'
import { pressLine } from './press-line.js'
import { type Site } from './site.js'
import { yard } from './yard.js'

export const siteBuilders: Readonly<Record<SiteName, () => Site>> = {
  dock,
  'press-line': pressLine,
  yard,
  gate,
}
