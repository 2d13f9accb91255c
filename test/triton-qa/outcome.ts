/** What became of one test. */
export type Outcome = Readonly<{
  suite: string
  test: string
  variant: string
  outcome: 'passed' | 'failed' | 'skipped'
  reason: string
  /** What it needs that Gantry has not: it counts where it passes all the same. */
  needs?: string
}>
