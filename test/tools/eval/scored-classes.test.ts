import { describe, expect, it } from 'vitest'
import { scoredClasses } from '../../../src/tools/eval/scored-classes.js'

const model = ['helmet', 'head', 'person', 'vest', 'no_vest']
const scored = (
  classes: readonly string[],
  {
    only,
    map = {},
    models = [model],
  }: { only?: string[]; map?: Record<string, string>; models?: string[][] } = {},
) => scoredClasses(classes, models, { ...(only && { only }), map: new Map(Object.entries(map)) })

describe('scored classes', () => {
  it('are those that both sides have, whatever their spelling', () => {
    expect(scored(['Helmet', 'NO-Vest', 'no vest', 'mask'])).toEqual({
      labels: ['helmet', 'no_vest'],
      placeOf: [0, 1, 1, undefined],
      notes: [
        'the model has no label for "mask" of the set: not scored (--map says which is which)',
        'the set does not label "head", "person", "vest": what the model finds of it is not scored',
      ],
    })
  })

  it('are told apart by a map, where several classes may become one', () => {
    const { labels, placeOf } = scored(['hard_hat', 'no_hard_hat', 'no_head_wear', 'person'], {
      map: { hard_hat: 'helmet', no_hard_hat: 'head', no_head_wear: 'head' },
    })
    expect([labels, placeOf]).toEqual([
      ['helmet', 'head', 'person'],
      [0, 1, 1, 2],
    ])
  })

  it('are only those that are asked for, by either name', () => {
    const wish = { map: { hat: 'helmet' } }
    expect(scored(['hat', 'head', 'person'], { ...wish, only: ['HAT', 'head'] })).toMatchObject({
      labels: ['helmet', 'head'],
      placeOf: [0, 1, undefined],
    })
    const { notes } = scored(['hat', 'head', 'person'], { ...wish, only: ['helmet'] })
    expect(notes[0]).toBe('"head", "person": left out by --classes')
  })

  it('are those of all models', () => {
    const { labels, notes } = scored(['helmet', 'head'], { models: [['helmet', 'head'], ['Helmet']] })
    expect(labels).toEqual(['helmet'])
    expect(notes).toContain('not every model has "head": not scored')
  })

  it.each([
    [['cat'], {}, /no class of the set is a label of the model: the set has cat; the model has helmet/],
    [['helmet'], { map: { helmt: 'helmet' } }, /--map helmt=helmet: the set has no class "helmt"/],
    [['helmet'], { map: { helmet: 'helm' } }, /--map helmet=helm: the model has no label "helm"/],
    [['helmet'], { only: ['helmut'] }, /--classes: nothing is called "helmut"/],
    [['helmet'], { only: ['head'] }, /--classes head: the set does not label "head"; it has helmet/],
  ])('refuse what neither side has: %j %j', (classes, wish, message) => {
    expect(() => scored(classes, wish)).toThrow(message)
    expect(() => scored(classes, wish)).toThrow(expect.objectContaining({ code: 'GANTRY_LABELS' }) as Error)
  })

  it('say what was probably meant', () => {
    expect(() => scored(['helmet'], { only: ['helmut'] })).toThrow(
      expect.objectContaining({ hint: 'Did you mean "helmet"?' }) as Error,
    )
  })
})
