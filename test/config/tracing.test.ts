import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config/config-error.js'
import { loadPipeline } from '../../src/config/load.js'
import { redactSettings } from '../../src/config/redact.js'
import { isTracingOn } from '../../src/config/tracing.js'
import { TestAuthority } from '../support/test-authority.js'

const dir = mkdtempSync(join(tmpdir(), 'gantry-tracing-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

const collector = 'http://collector:4318'

function tracing(section: object | undefined, env: Record<string, string> = {}) {
  const file = join(dir, 'pipeline.json')
  writeFileSync(file, JSON.stringify({ apiVersion: 'gantry/v1', ...(section && { tracing: section }) }))
  return loadPipeline(file, { env }).config.tracing
}

/** What is wrong, with the place that a person has to change. */
function faults(section: object | undefined, env: Record<string, string> = {}): readonly string[] {
  try {
    tracing(section, env)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(
      ({ file, path, message }) => `${file === 'environment' ? '$' : ''}${path} ${message}`,
    )
  }
}

describe('tracing', () => {
  it('is off until an endpoint is named', () => {
    expect(isTracingOn(tracing(undefined))).toBe(false)
    expect(isTracingOn(tracing({ sampling: 1 }))).toBe(false)
    expect(tracing({ endpoint: collector })).toMatchObject({
      protocol: 'http/protobuf',
      sampling: 0.01,
      followParent: true,
      serviceName: 'gantry',
    })
    expect(isTracingOn(tracing({ endpoint: collector }))).toBe(true)
    expect(isTracingOn(tracing({ endpoint: collector, enabled: false }))).toBe(false)
  })

  it.each<[string, object, string]>([
    [
      'an endpoint that is no URL',
      { endpoint: 'collector:4318' },
      'tracing.endpoint must be an http:// or https://',
    ],
    ['one with a login', { endpoint: 'http://me:s3cr3t@collector' }, 'tracing.endpoint must hold no login'],
    [
      'a path with gRPC',
      { endpoint: `${collector}/v1/traces`, protocol: 'grpc' },
      'tracing.endpoint has a path',
    ],
    ['a protocol that is not there', { endpoint: collector, protocol: 'http/json' }, 'tracing.protocol'],
    ['a ratio in percent', { endpoint: collector, sampling: 5 }, 'tracing.sampling'],
    [
      'TLS without TLS',
      { endpoint: collector, tls: { servername: 'x' } },
      'tracing.tls is for an https:// URL',
    ],
    [
      'a header of ours',
      { endpoint: collector, headers: { 'content-type': 'x' } },
      'is a header that the service writes',
    ],
    ['a PEM file that is not there', { endpoint: 'https://c', tls: { ca: 'none.pem' } }, 'tracing.tls.ca'],
  ])('refuses %s', (_, section, fault) => {
    const found = faults(section)
    expect(found.join()).toContain(fault)
    expect(found.join()).not.toContain('s3cr3t')
  })

  it('finds PEM files beside the pipeline file', () => {
    const authority = new TestAuthority()
    copyFileSync(authority.ca, join(dir, 'ca.pem'))
    authority.remove()
    expect(tracing({ endpoint: 'https://c', tls: { ca: 'ca.pem' } }).tls?.ca).toBe(join(dir, 'ca.pem'))
  })

  it('S39: headers are masked in prints of settings', () => {
    const config = tracing({ endpoint: collector, headers: { authorization: 'Bearer s3cr3t' } })
    expect(JSON.stringify(redactSettings({ tracing: config }))).not.toContain('s3cr3t')
  })
})

describe('variables of OpenTelemetry', () => {
  it('say where traces go, and how', () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://agent:4318/',
      OTEL_SERVICE_NAME: 'dock',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc, x-team = gate',
      OTEL_EXPORTER_OTLP_TIMEOUT: '2000',
    }
    expect(tracing(undefined, env)).toMatchObject({
      endpoint: 'http://agent:4318/v1/traces',
      serviceName: 'dock',
      sampling: 0.25,
      headers: { authorization: 'Bearer abc', 'x-team': 'gate' },
      timeoutMs: 2_000,
    })
  })

  it('of traces alone go over those of all signals, and their URL is used as it is', () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://agent:4318',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://traces:1234/own',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
    }
    expect(tracing(undefined, env)).toMatchObject({
      endpoint: 'http://traces:1234/own',
      protocol: 'http/protobuf',
    })
  })

  it('keep the base URL of gRPC', () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://agent:4317', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }
    expect(tracing(undefined, env)).toMatchObject({ endpoint: 'http://agent:4317', protocol: 'grpc' })
  })

  it.each([
    ['always_on', 1],
    ['parentbased_always_on', 1],
    ['always_off', 0],
    ['traceidratio', 1],
  ])('sampler %s is %d', (name, sampling) => {
    expect(tracing({ endpoint: collector }, { OTEL_TRACES_SAMPLER: name }).sampling).toBe(sampling)
  })

  it('say what the file, GANTRY__ variables and flags leave open, and nothing else', () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://agent:4318',
      OTEL_SERVICE_NAME: 'dock',
      OTEL_TRACES_SAMPLER: 'always_on',
      GANTRY__TRACING__SERVICE_NAME: 'ours',
    }
    expect(tracing({ endpoint: collector, sampling: 0.5 }, env)).toMatchObject({
      endpoint: collector,
      serviceName: 'ours',
      sampling: 0.5,
    })
  })

  it('are meant for others where no endpoint is named, whatever they say', () => {
    const env = {
      OTEL_SERVICE_NAME: 'x',
      OTEL_TRACES_SAMPLER: 'jaeger_remote',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    }
    expect(faults(undefined, env)).toEqual([])
    expect(tracing(undefined, env)).toMatchObject({ serviceName: 'gantry', protocol: 'http/protobuf' })
  })

  it.each([[{ OTEL_SDK_DISABLED: 'true' }], [{ OTEL_TRACES_EXPORTER: 'none' }]])(
    '%j switches tracing off',
    (env) => {
      const config = tracing(undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://agent:4318', ...env })
      expect(isTracingOn(config)).toBe(false)
    },
  )

  it.each<[string, Record<string, string>, string]>([
    [
      'a protocol that is not there',
      { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' },
      '$OTEL_EXPORTER_OTLP_PROTOCOL',
    ],
    [
      'a sampler that is not known',
      { OTEL_TRACES_SAMPLER: 'jaeger_remote' },
      '$OTEL_TRACES_SAMPLER "jaeger_remote"',
    ],
    [
      'a ratio that is none',
      { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: 'half' },
      '$OTEL_TRACES_SAMPLER_ARG',
    ],
    [
      'headers that are no list',
      { OTEL_EXPORTER_OTLP_HEADERS: 'authorization' },
      '$OTEL_EXPORTER_OTLP_HEADERS',
    ],
    ['a header with a broken escape', { OTEL_EXPORTER_OTLP_HEADERS: 'a=%zz' }, '$OTEL_EXPORTER_OTLP_HEADERS'],
    ['an endpoint that is no URL', { OTEL_EXPORTER_OTLP_ENDPOINT: 'agent' }, '$OTEL_EXPORTER_OTLP_ENDPOINT'],
  ])('with %s are named', (_, env, fault) => {
    const found = faults(undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://agent:4318', ...env })
    expect(found.join()).toContain(fault)
  })

  it('name the service as one of the attributes too', () => {
    const env = { OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=plant, service.name=dock' }
    expect(tracing({ endpoint: collector }, env).serviceName).toBe('dock')
    expect(tracing({ endpoint: collector }, { ...env, OTEL_SERVICE_NAME: 'gate' }).serviceName).toBe('gate')
  })

  it('that are empty are as if they were not set', () => {
    expect(isTracingOn(tracing(undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: '' }))).toBe(false)
  })
})
