/** A piece of work, of several that are done side by side. */
export type Job = Readonly<{
  name: string
  /** Names of what must be over before it begins, however that ended; those that are no jobs do not count. */
  needs: readonly string[]
  /** How much it is: of those that can begin, the smallest does. */
  size: number
}>

/**
 * Does jobs, so many at a time. What waits for others keeps nothing else waiting.
 *
 * @param work - one that throws is over like another.
 * @param closing - once aborted, nothing more is begun; absent: all is.
 * @returns when all that began are over. Needs must not go round in circles: such jobs are not begun.
 */
export async function sideBySide<J extends Job>(
  jobs: readonly J[],
  atATime: number,
  work: (job: J) => Promise<void>,
  closing?: AbortSignal,
): Promise<void> {
  const waiting = [...jobs].sort((a, b) => a.size - b.size)
  const open = new Set(jobs.map(({ name }) => name))
  const running = new Set<Promise<void>>()
  for (;;) {
    while (running.size < atATime && closing?.aborted !== true) {
      const next = waiting.findIndex(({ needs }) => !needs.some((need) => open.has(need)))
      if (next < 0) break
      const [job] = waiting.splice(next, 1) as [J]
      const done = work(job)
        .catch(() => undefined)
        .then(() => {
          open.delete(job.name)
          running.delete(done)
        })
      running.add(done)
    }
    if (running.size === 0) return
    await Promise.race(running)
  }
}
