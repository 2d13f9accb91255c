import type { LetterboxPlan } from './letterbox-parameters.js'

/** What the worker that rearranges pixels is loaded with, told, and answers. */
export type LetterboxLoad = Readonly<{ plan: LetterboxPlan }>

/** RGB bytes `[H, W, 3]` of each picture; the buffers are transferred. */
export type LetterboxJob = Readonly<{ pictures: readonly ArrayBuffer[] }>

/** The tensor of all pictures, in the layout of the plan. */
export type LetterboxAnswer = Readonly<{ pixels: ArrayBuffer }>
