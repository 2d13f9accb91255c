import type { ModelConfig } from '../model-config.js'
import { type ConfigFault, isGiven, listed } from './fault.js'

/** As a label of a metric may be named: anything else becomes `_`. */
export function metricLabel(tag: string): string {
  return tag.replace(/^\d|[^A-Za-z0-9_]/g, '_')
}

/** Tags and buckets of metrics. */
export function metricFaults(config: ModelConfig): readonly ConfigFault[] {
  return [...tagFaults(config), ...bucketFaults(config)]
}

function tagFaults({ name: model = '', metric_tags }: ModelConfig): readonly ConfigFault[] {
  const tags = Object.keys(metric_tags)
  return tags.flatMap((tag, index) => {
    const other = tags.slice(0, index).find((before) => metricLabel(before) === metricLabel(tag))
    return other === undefined
      ? []
      : [
          {
            field: `metric_tags["${tag}"]`,
            problem: `metric tags "${other}" and "${tag}" of ${model} are one label, ${metricLabel(tag)}`,
            fix: 'write letters, digits and _',
          },
        ]
  })
}

function bucketFaults({ name: model = '', model_metrics }: ModelConfig): readonly ConfigFault[] {
  return (model_metrics?.metric_control ?? []).flatMap(({ metric_identifier, histogram_options }, index) => {
    const field = `model_metrics.metric_control[${index}]`
    const buckets = histogram_options?.buckets ?? []
    const ascend = buckets.every((bucket, at) => bucket > (buckets[at - 1] ?? -Infinity))
    return [
      ...(isGiven(metric_identifier?.family)
        ? []
        : [
            {
              field: `${field}.metric_identifier.family`,
              problem: `a metric control of ${model} names no family`,
              fix: 'write which metric it is about',
            },
          ]),
      ...(ascend
        ? []
        : [
            {
              field: `${field}.histogram_options.buckets`,
              problem: `buckets of ${model} must ascend: they are ${listed(buckets)}`,
              fix: 'write them from the smallest to the largest',
            },
          ]),
    ]
  })
}
