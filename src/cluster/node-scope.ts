/** Header with which a node of a cluster asks another for what is its own: it asks all of them itself. */
export const scopeHeader = 'gantry-scope'
export const nodeScope = 'node'
