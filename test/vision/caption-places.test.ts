import { expect, it } from 'vitest'
import { CaptionPlaces, headPlace } from '../../src/vision/caption-places.js'
import { crowd } from '../support/crowd.js'

it('gives captions of boxes that share their upper edge places of their own, inside the picture', () => {
  const places = new CaptionPlaces({ x: 0, y: 0, width: 300, height: 200 })
  const size = { width: 80, height: 15 }
  const box = { x: 100, y: 60, width: 60, height: 60 }
  const taken = [1, 2, 3, 4].map(() => places.take(size, box, 1))
  const keys = new Set(taken.map((at) => `${at?.x},${at?.y}`))
  expect(keys.size).toBe(4)
  for (const { x, y } of taken.filter((at) => at !== undefined)) {
    expect(x).toBeGreaterThanOrEqual(0)
    expect(x + size.width).toBeLessThanOrEqual(300)
    expect(y).toBeGreaterThanOrEqual(0)
    expect(y + size.height).toBeLessThanOrEqual(200)
  }
})

it('keeps captions off what lies over the picture', () => {
  const badge = { x: 0, y: 0, width: 110, height: 34 }
  const places = new CaptionPlaces({ x: 0, y: 0, width: 300, height: 200 }, [badge])
  const at = places.take({ width: 80, height: 15 }, { x: 20, y: 20, width: 60, height: 60 }, 1)
  expect(at && (at.x >= badge.width || at.y >= badge.height)).toBe(true)
})

it.each([1, 3, 6, 12, 30])('hides no head and no other caption among %d people', (people) => {
  const size = { width: 90, height: 17 }
  let placed = 0
  for (let seed = 1; seed <= 50; seed += 1) {
    const boxes = crowd(seed, people)
    const heads = boxes.map(({ label, rect }) => headPlace(label, rect))
    const places = new CaptionPlaces({ x: 0, y: 0, width: 640, height: 360 }, heads)
    const captions = boxes.flatMap(({ rect }) => places.take(size, rect, 2) ?? [])
    placed += captions.length
    for (const [index, caption] of captions.entries())
      for (const other of [...heads, ...captions.slice(index + 1)]) {
        const apart =
          caption.x >= other.x + other.width ||
          other.x >= caption.x + caption.width ||
          caption.y >= other.y + other.height ||
          other.y >= caption.y + caption.height
        expect(apart, `${people} people, seed ${seed}`).toBe(true)
      }
  }
  expect(placed).toBeGreaterThan(50 * Math.min(people, 6))
})

it('leaves free the head of a person, and all of what is one', () => {
  const rect = { x: 0, y: 30, width: 40, height: 90 }
  expect(headPlace('person', rect)).toEqual({ ...rect, height: 30 })
  for (const label of ['head', 'helmet', 'no_helmet', 'hard-hat', 'Hardhat', 'face'])
    expect(headPlace(label, rect), label).toEqual(rect)
})
