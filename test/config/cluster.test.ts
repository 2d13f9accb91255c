import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import { clusterKafka } from '../../src/config/cluster.js'
import { pipelineSchema } from '../../src/config/pipeline.js'

const brokers = ['192.0.2.1:9092']
const sinks = { kafka: { brokers } }

function read(cluster: object | undefined, more: object = { sinks }) {
  return pipelineSchema.safeParse({ apiVersion: 'gantry/v1', ...(cluster && { cluster }), ...more })
}

describe('the section of a cluster', () => {
  it('needs an id, and brokers here or in the sink', () => {
    const { cluster, sinks: others } = read({ id: 'plant' }).data!
    expect(cluster).toMatchObject({
      ...{ id: 'plant', node: hostname(), slots: 256, createTopics: true },
      topics: { cameras: 'gantry.cameras.v1', cameraErrors: 'gantry.cameras.errors.v1' },
    })
    expect(clusterKafka(cluster!, others.kafka)).toMatchObject({ setting: 'sinks.kafka' })
    const own = read({ id: 'plant', kafka: { brokers: ['192.0.2.2:9092'] } }).data!
    expect(clusterKafka(own.cluster!, own.sinks.kafka)).toMatchObject({
      ...{ setting: 'cluster.kafka', connection: { brokers: ['192.0.2.2:9092'], ssl: false } },
    })
    expect(read(undefined, {}).data?.cluster).toBeUndefined()
  })

  it.each([
    ['no id', {}, {}, ['cluster', 'id']],
    ['an id that no group may have', { id: 'plant one' }, {}, ['cluster', 'id']],
    ['no brokers', { id: 'plant' }, { sinks: {} }, ['cluster', 'kafka']],
    ['no engine', { id: 'plant' }, { engines: 0 }, ['engines']],
    ['no slot', { id: 'plant', slots: 0 }, {}, ['cluster', 'slots']],
    ['too many slots', { id: 'plant', slots: 8_193 }, {}, ['cluster', 'slots']],
    ['a url with a path', { id: 'plant', url: 'http://a/api' }, {}, ['cluster', 'url']],
    ['a url with a login', { id: 'plant', url: 'http://u:p@a' }, {}, ['cluster', 'url']],
    ['a url of another scheme', { id: 'plant', url: 'ws://a' }, {}, ['cluster', 'url']],
    [
      'a topic that is none',
      { id: 'plant', topics: { cameras: 'a b' } },
      {},
      ['cluster', 'topics', 'cameras'],
    ],
    [
      'one topic for both',
      { id: 'plant', topics: { cameras: 'a', cameraErrors: 'a' } },
      {},
      ['cluster', 'topics', 'cameraErrors'],
    ],
    [
      'the topic of results',
      { id: 'plant', topics: { cameras: 'gantry.detections.v1' } },
      {},
      ['cluster', 'topics', 'cameras'],
    ],
    ['no replica', { id: 'plant', replicationFactor: 0 }, {}, ['cluster', 'replicationFactor']],
  ])('refuses %s', (_, cluster, more, path) => {
    const { error } = read(cluster, { sinks, ...more })
    expect(error?.issues.map((issue) => issue.path)).toEqual([path])
  })
})
