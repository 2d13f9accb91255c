/**
 * SQLite as Node has it. It is asked for and not imported: Node 22 warns of an import that this is experimental before a line of ours has run, and
 * so prints that among the lines of the log.
 */
export const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
