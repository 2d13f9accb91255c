import { expect, it } from 'vitest'
import { SessionKeeper } from '../../src/sources/session-keeper.js'

const message = (headers: readonly (readonly [string, string])[]) => ({
  first: 'RTSP/1.0 200 OK',
  headers,
  body: Buffer.alloc(0),
})
const nothing = undefined

/** A camera that was told to play at 0, and asked for that. */
function playing(session = 'a1;timeout=60', options = 'OPTIONS, GET_PARAMETER'): SessionKeeper {
  const keeper = new SessionKeeper(0)
  keeper.learn(message([['Public', options]]))
  keeper.learn(message([['Session', session]]))
  keeper.asked(0)
  keeper.plays(0)
  keeper.heard(0)
  return keeper
}

it('R61: asks a camera that says nothing whether it is there, every ten seconds', () => {
  const keeper = playing()
  expect(keeper.next(9_000)).toBe(nothing)
  expect(keeper.next(10_000)).toEqual({ method: 'GET_PARAMETER', session: 'a1' })
  keeper.asked(10_000)
  keeper.heard(10_050)
  expect(keeper.next(15_000)).toBe(nothing)
  expect(keeper.next(20_100)).toEqual({ method: 'GET_PARAMETER', session: 'a1' })
})

it.each([
  ['a1;timeout=60', 36_000],
  ['a1', 36_000],
  ['a1 ; timeout=10', 6_000],
  ['a1;timeout=0', 36_000],
])('R61: keeps the session %s before it runs out, also of a camera that reports', (session, dueMs) => {
  const keeper = playing(session)
  for (let atMs = 0; atMs < dueMs; atMs += 1_000) {
    keeper.heard(atMs)
    expect(keeper.next(atMs)).toBe(nothing)
  }
  expect(keeper.next(dueMs)).toBeDefined()
  expect(keeper.everyMs).toBeLessThanOrEqual(dueMs / 4)
})

it('leaves the keeping to a decoder that asks', () => {
  const keeper = playing()
  for (let atMs = 0; atMs < 300_000; atMs += 1_000) {
    keeper.heard(atMs)
    if (atMs % 30_000 === 0) keeper.asked(atMs)
    expect(keeper.next(atMs)).toBe(nothing)
  }
})

it('asks for options where a camera does not know the other request', () => {
  expect(playing('a1', 'OPTIONS, DESCRIBE, SETUP').next(60_000)?.method).toBe('OPTIONS')
})

it('R61: takes a camera for gone that no longer answers, as it did, and no other', () => {
  const [answers, never] = [playing(), playing()]
  for (const keeper of [answers, never]) {
    keeper.next(10_000)
    keeper.asked(10_000)
  }
  answers.heard(10_010)
  answers.answered(200)
  expect(answers.signs(15_000, 1)).toMatchObject({ life: 'alive', pictures: 1 })
  answers.next(21_000)
  answers.asked(21_000)
  expect(answers.signs(25_000, 1).life).toBe('alive')
  expect(answers.signs(31_000, 1).life).toBe('gone')
  expect(never.signs(31_000, 1).life).toBe('unknown')
  answers.heard(32_000)
  expect(answers.signs(32_100, 1).life).toBe('alive')
})

it('R61: takes a camera for gone that knows nothing of the session any more, until pictures come', () => {
  const keeper = playing()
  keeper.next(10_000)
  keeper.heard(10_010)
  keeper.answered(454)
  expect(keeper.signs(10_020, 1).life).toBe('gone')
  keeper.sent(10_030)
  expect(keeper.signs(10_040, 1).life).toBe('alive')
})

it('R61: tells how long the camera was quiet, from playing on', () => {
  const keeper = playing()
  keeper.sent(400)
  expect(keeper.signs(500, 1).quiet).toBe(nothing)
  keeper.sent(60_400)
  keeper.sent(60_440)
  expect(keeper.signs(60_500, 3).quiet).toEqual({ forMs: 60_000, endedMs: 60_400 })
})
