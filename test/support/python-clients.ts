import { pythonClients as installed } from '../../scripts/lib/python-clients.mjs'

/** A Python with `websockets`, `confluent-kafka` and `mypy`; `undefined` where they are not installed; in CI they always are. */
export const pythonClients = installed()
