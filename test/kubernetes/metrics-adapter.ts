import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { join } from 'node:path'
import { parse } from 'yaml'
import { TestAuthority } from '../support/test-authority.js'

type Rule = Readonly<{ name: { as: string }; metricsQuery: string }>
type Series = Readonly<{ metric: Readonly<Record<string, string>>; value: readonly [number, string] }>

const group = 'custom.metrics.k8s.io'

/** What an adapter of metrics is told by docs/kubernetes.md. */
export function documentedRules(): readonly Rule[] {
  const page = readFileSync(join(import.meta.dirname, '../../docs/kubernetes.md'), 'utf8')
  const [, text = ''] = /```yaml\n(rules:\n.*?)```/s.exec(page) ?? []
  return (parse(text) as { rules: { custom: readonly Rule[] } }).rules.custom
}

/**
 * What a Prometheus says.
 *
 * @throws Error with its answer
 */
export async function promQuery(prometheus: string, query: string): Promise<readonly Series[]> {
  const response = await fetch(`${prometheus}/api/v1/query?query=${encodeURIComponent(query)}`)
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return (JSON.parse(text) as { data: { result: readonly Series[] } }).data.result
}

/** Serves metrics of pods to the API server as prometheus-adapter does, by its rules of the documentation. */
export class MetricsAdapter {
  readonly #authority = new TestAuthority()
  readonly #server: Server

  private constructor(
    readonly prometheus: string,
    readonly namespace: string,
  ) {
    const { cert, key } = this.#authority.issue('adapter')
    this.#server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
      void this.#answer(new URL(request.url ?? '/', 'https://adapter').pathname).then(
        (body) => {
          response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
          response.end(JSON.stringify(body ?? {}))
        },
        (error: unknown) => response.writeHead(500).end(String(error)),
      )
    })
  }

  static async start(prometheus: string, namespace: string): Promise<MetricsAdapter> {
    const adapter = new MetricsAdapter(prometheus, namespace)
    adapter.#server.listen(0, '127.0.0.1')
    await once(adapter.#server, 'listening')
    return adapter
  }

  /** What leads the API server to it. */
  get objects(): readonly object[] {
    const { port } = this.#server.address() as { port: number }
    const service = { name: 'adapter', namespace: 'kube-system', port }
    return [
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: service.name, namespace: service.namespace },
        spec: { type: 'ExternalName', externalName: 'localhost', ports: [{ port }] },
      },
      {
        apiVersion: 'apiregistration.k8s.io/v1',
        kind: 'APIService',
        metadata: { name: `v1beta2.${group}` },
        spec: {
          service,
          group,
          version: 'v1beta2',
          insecureSkipTLSVerify: true,
          groupPriorityMinimum: 100,
          versionPriority: 100,
        },
      },
    ]
  }

  async #answer(path: string): Promise<object | undefined> {
    const rules = documentedRules()
    if (path === `/apis/${group}/v1beta2`) {
      const kinds = { singularName: '', namespaced: true, kind: 'MetricValueList', verbs: ['get'] }
      const resources = rules.map(({ name }) => ({ name: `pods/${name.as}`, ...kinds }))
      return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: `${group}/v1beta2`, resources }
    }
    const start = `/apis/${group}/v1beta2/namespaces/${this.namespace}/pods/*/`
    const asked = decodeURIComponent(path)
    const rule = rules.find(({ name }) => asked === `${start}${name.as}`)
    return rule && this.#values(rule)
  }

  async #values({ name, metricsQuery }: Rule): Promise<object> {
    const query = metricsQuery
      .replaceAll('<<.GroupBy>>', 'pod')
      .replaceAll('<<.LabelMatchers>>', `namespace="${this.namespace}",pod=~".+"`)
    const items = (await promQuery(this.prometheus, query)).map(({ metric, value: [atSeconds, value] }) => ({
      describedObject: { kind: 'Pod', apiVersion: 'v1', namespace: this.namespace, name: metric['pod'] },
      metric: { name: name.as },
      timestamp: new Date(atSeconds * 1_000).toISOString(),
      value: `${Math.round(Number(value) * 1_000)}m`,
    }))
    return { kind: 'MetricValueList', apiVersion: `${group}/v1beta2`, metadata: {}, items }
  }

  async end(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
    this.#authority.remove()
  }
}
