import { expect, it } from 'vitest'
import { CardQuestions } from '../../../src/processes/engine/card-questions.js'
import type { FromEngine } from '../../../src/processes/engine/protocol.js'

it('leaves the card when the last decoder of a camera ends, of which two are there while one takes the place of the other', async () => {
  const sent: FromEngine[] = []
  const cards = new CardQuestions({ send: (message) => void sent.push(message) })
  const [before, after] = [cards.of('gate'), cards.of('gate')]
  for (const [requestId, source] of [before, after].entries()) {
    const answer = source.askForCard()
    cards.answered(requestId + 1, { device: 0, isSeen: true })
    expect(await answer).toEqual({ device: 0, isSeen: true })
  }
  before.leaveCard()
  expect(sent.map(({ type }) => type)).toEqual(['wantsCard', 'wantsCard'])
  after.leaveCard()
  expect(sent.at(-1)).toEqual({ type: 'leavesCard', cameraId: 'gate' })
})
