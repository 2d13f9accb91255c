import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { configurationPage, settings, withTables } from '../../scripts/configuration-docs.js'
import { variableOf } from '../../src/config/environment.js'

const page = readFileSync(configurationPage, 'utf8')

describe('docs/configuration.md', () => {
  it('has the tables of the schema; `npm run schemas` writes them', () => {
    expect(withTables(page)).toBe(page)
  })

  it('says of every setting what it means', () => {
    expect(settings().filter(({ meaning }) => meaning === '')).toEqual([])
  })

  it('names variables as the loader does', () => {
    expect(page).toContain(`${variableOf(['server', 'httpPort'])}=80`)
    expect(page).toContain(`${variableOf(['inference', 'providers'])}='["cpu"]'`)
  })
})
