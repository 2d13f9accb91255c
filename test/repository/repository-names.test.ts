import { expect, it } from 'vitest'
import { repositoryNames } from '../../src/repository/repository-names.js'

it.each([
  [['/srv/a/models'], ['models']],
  [
    ['/srv/a/models', '/srv/b/models'],
    ['a/models', 'b/models'],
  ],
  [
    ['/srv/a/models', '/opt/a/models', '/opt/other'],
    ['srv/a/models', 'opt/a/models', 'other'],
  ],
  [
    ['/models', '/srv/models/'],
    ['/models', 'srv/models'],
  ],
  [['/srv/a/models', '/srv/a/models'], ['models']],
])('tells folders apart by as little as that takes: %j', (dirs, names) => {
  expect([...repositoryNames(dirs).values()]).toEqual(names)
})
