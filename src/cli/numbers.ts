import { UsageError } from './failure.js'

/** @throws UsageError that names the flag and the range */
export function wholeNumber(text: string, flag: string, min: number, max: number): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isInteger(value) && value >= min && value <= max) return value
  throw new UsageError(`${flag} is "${text}"`, `Use a whole number from ${min} to ${max}.`)
}

/** @throws UsageError that names the flag and the range */
export function numberBetween(text: string, flag: string, min: number, max: number): number {
  const value = Number(text)
  if (text.trim() !== '' && value >= min && value <= max) return value
  throw new UsageError(`${flag} is "${text}"`, `Use a number from ${min} to ${max}.`)
}

/** Words between commas, at least one. @throws UsageError */
export function listOf(text: string, flag: string): readonly string[] {
  const words = text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
  if (words.length > 0) return [...new Set(words)]
  throw new UsageError(`${flag} names nothing`, `Write ${flag} with values between commas.`)
}
