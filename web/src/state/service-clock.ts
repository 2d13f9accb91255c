import { ServiceClock } from '../../../clients/typescript/src/index.js'

export { monotonicMs } from '../../../clients/typescript/src/index.js'

/** Wall time of the service, learnt by the live streams: every age and duration that the page shows is by it. */
export const serviceClock = new ServiceClock()
