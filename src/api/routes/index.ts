import type { Route } from '../route.js'
import { cameraRoutes } from './cameras.js'
import { coverageRoutes } from './coverage.js'
import { documentRoutes } from './documents.js'
import { ensembleRoutes } from './ensemble.js'
import { modelsRoutes } from './models.js'
import { healthRoute, metricsRoute, operationRoutes } from './operations.js'
import { resultRoutes } from './results.js'

/** Everything on the main port but the files of the page. */
export const apiRoutes: readonly Route[] = [
  ...cameraRoutes,
  ...resultRoutes,
  ...coverageRoutes,
  ...ensembleRoutes,
  ...modelsRoutes,
  ...operationRoutes,
  ...documentRoutes,
]

/** What the metrics port answers. */
export const metricsPortRoutes: readonly Route[] = [metricsRoute, healthRoute]
