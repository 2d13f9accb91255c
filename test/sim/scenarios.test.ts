import { describe, expect, it } from 'vitest'
import { ScenarioError } from '../../sim/errors.js'
import { loadScenario, parseScenario, scenarioNames } from '../../sim/scenario/load.js'

const plain = (more = ''): string =>
  `name: plain\ntitle: Plain\nabout: A scenario for the tests of the schema.\nsite: dock\nseed: 1\ndurationS: 4\n${more}`

function problemsOf(yaml: string): readonly string[] {
  try {
    parseScenario('plain', yaml)
  } catch (error) {
    if (error instanceof ScenarioError) return error.problems
    throw error
  }
  return []
}

describe('a scenario text', () => {
  it('is filled with defaults', () => {
    const scenario = parseScenario('plain', plain('people: [{ id: ada, start: [0, 0] }]'))
    expect(scenario).toMatchObject({
      lighting: 'day',
      rain: 0,
      loop: false,
      people: [{ headgear: { kind: 'helmet', color: 'yellow' } }],
    })
  })

  it.each([
    ['an unknown key', 'colour: red', 'colour'],
    ['an unknown site', 'site: beach', ''],
    ['an unknown act', 'people: [{ id: ada, start: [0, 0], acts: [{ do: fly }] }]', 'people.0.acts.0.do'],
    ['an id used twice', 'people: [{ id: ada, start: [0, 0] }, { id: ada, start: [1, 0] }]', 'people.1.id'],
    ['a zone of two corners', 'zones: [{ id: edge, polygonM: [[0, 0], [1, 1]] }]', 'zones.0.polygonM'],
    ['a fault after the end', 'faults: [{ kind: blur, fromS: 3, toS: 5 }]', 'faults.0.toS'],
    [
      'a cap in the hand',
      'people: [{ id: ada, start: [0, 0], headgear: { kind: cap, inHand: true } }]',
      'people.0.headgear.inHand',
    ],
    [
      'a helmet put on by one who has a cap',
      'people: [{ id: ada, start: [0, 0], headgear: { kind: cap }, acts: [{ do: put_on_helmet }] }]',
      'people.0.acts.0.do',
    ],
    [
      'a driver with the helmet in the hand',
      'machines: [{ id: fork, kind: forklift, start: [0, 0] }]\npeople: [{ id: ada, start: [0, 0], rides: fork, headgear: { inHand: true } }]',
      'people.0.headgear.inHand',
    ],
    [
      "a name of the crowd's",
      'crowd: { count: 2, fromM: [0, 0], toM: [4, 4] }\npeople: [{ id: crowd-1, start: [0, 0] }]',
      'people.0.id',
    ],
    ['a driver without a forklift', 'people: [{ id: ada, start: [0, 0], rides: truck-1 }]', 'people.0.rides'],
    [
      'a loop that does not close',
      'loop: true\npeople: [{ id: ada, start: [0, 0], acts: [{ do: walk, to: [1, 0] }] }]',
      'people.0.acts',
    ],
    [
      'a loop that ends with the forks up',
      'loop: true\nmachines: [{ id: fork, kind: forklift, start: [0, 0], acts: [{ do: lift, toM: 0.1, overS: 1 }] }]',
      'machines.0.acts',
    ],
  ])('is refused for %s, with the path', (_, more, path) => {
    const problems = problemsOf(plain(more))
    expect(problems).not.toHaveLength(0)
    expect(problems.join('; ')).toContain(path)
  })

  it('is refused with all its problems at once', () => {
    expect(problemsOf(plain('rain: 2\nlighting: noon'))).toHaveLength(2)
  })

  it('must be named like its file', () => {
    expect(() => parseScenario('other', plain())).toThrow(/must be the file's name/)
  })
})

describe('the library', () => {
  it('has at least twelve valid scenarios of 20 to 120 s, on all four sites and in all lights', async () => {
    const scenarios = await Promise.all((await scenarioNames()).map(loadScenario))
    expect(scenarios.length).toBeGreaterThanOrEqual(12)
    for (const { durationS } of scenarios) expect(durationS).toSatisfy((s: number) => s >= 20 && s <= 120)
    expect(new Set(scenarios.map(({ site }) => site)).size).toBe(4)
    expect(new Set(scenarios.map(({ lighting }) => lighting))).toEqual(new Set(['day', 'dusk', 'night']))
  })

  it('answers an unknown name with the names there are', async () => {
    await expect(loadScenario('moon-base')).rejects.toThrow(/demo-dock/)
  })
})
