import { type Configuration, keyOf } from './search-space.js'
import type { GainStep, RepeatedConfiguration } from './optimize-report.js'

/** A configuration on the way from the baseline to the best. */
export type NamedConfiguration = Readonly<{ name: string; configuration: Configuration }>

/**
 * The way from the baseline to the best, one kind of setting after another; steps that change nothing are left out.
 *
 * @returns the baseline first, the best last.
 */
export function stepsTo(baseline: Configuration, best: Configuration): readonly NamedConfiguration[] {
  const { form, provider, intraOpThreads, spinning, graph, arena, parallel, instances } = best
  const withForm = { ...baseline, form }
  const withOptions = { ...withForm, provider, intraOpThreads, spinning, graph, arena, parallel }
  const withInstances = { ...withOptions, instances }
  const all = [
    { name: 'baseline', configuration: baseline },
    { name: 'form of the model', configuration: withForm },
    { name: 'runtime options', configuration: withOptions },
    { name: 'instances', configuration: withInstances },
    { name: 'batches', configuration: best },
  ]
  return all.filter(
    ({ configuration }, index) =>
      index === 0 || keyOf(configuration) !== keyOf(all[index - 1]!.configuration),
  )
}

/** The three whose curves are drawn: the baseline, what options of the runtime make of it, and all together. */
export function curvesTo(baseline: Configuration, best: Configuration): readonly NamedConfiguration[] {
  const { instances: _, maxBatch: __, queueDelayUs: ___, ...options } = best
  const { instances, maxBatch, queueDelayUs } = baseline
  const all = [
    { name: 'baseline', configuration: baseline },
    {
      name: 'after form and runtime options',
      configuration: { ...options, instances, maxBatch, queueDelayUs },
    },
    { name: 'after instances and batches', configuration: best },
  ]
  return all.filter(
    ({ configuration }, index) =>
      all.findIndex((other) => keyOf(other.configuration) === keyOf(configuration)) === index,
  )
}

/** What each step gained over the one before it. */
export function gainsOf(
  steps: readonly NamedConfiguration[],
  measured: readonly RepeatedConfiguration[],
): readonly GainStep[] {
  const found = steps.flatMap(({ name, configuration }) => {
    const one = measured.find((each) => keyOf(each.configuration) === keyOf(configuration))
    return one === undefined ? [] : [{ name, measured: one }]
  })
  return found.map(({ name, measured: one }, index) => ({
    name,
    measured: one,
    throughputRatio: index === 0 ? 1 : one.throughput.median / found[index - 1]!.measured.throughput.median,
  }))
}
