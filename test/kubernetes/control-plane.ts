import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { controlPlanePrograms } from '../../scripts/lib/control-plane.mjs'
import { goProgram } from '../../scripts/lib/go-programs.mjs'
import { ensureHelm, helmProgram } from '../../scripts/lib/helm.mjs'
import { ServerProcess } from '../support/child.js'
import { freePort } from '../support/free-port.js'
import { until } from '../support/until.js'
import { say } from './say.js'

const kwok = 'sigs.k8s.io/kwok/cmd/kwok@v0.7.0'
const token = 'the-token-of-the-test'

export type CommandResult = Readonly<{ code: number; stdout: string; stderr: string }>

/** etcd, API server, controllers and scheduler of Kubernetes on loopback; kwok plays the machines. No container runs. */
export class ControlPlane {
  readonly #started: ServerProcess[] = []
  readonly kubeconfig: string

  private constructor(
    readonly folder: string,
    readonly programs: string,
    readonly port: number,
  ) {
    this.kubeconfig = join(folder, 'kubeconfig.json')
  }

  /**
   * @param folder - holds all that it writes.
   * @throws Error where a program is missing or does not come up
   */
  static async start(folder: string): Promise<ControlPlane> {
    const missing = ensureHelm(say)
    if (missing.length > 0) throw new Error(missing.join('\n'))
    const kwokPath = goProgram(kwok, say)
    const plane = new ControlPlane(folder, controlPlanePrograms(say), await freePort())
    try {
      plane.#writeCredentials()
      await plane.#startEtcdAndApi()
      await plane.#startControllers(kwokPath)
      return plane
    } catch (error) {
      await plane.end()
      throw error
    }
  }

  async #startControllers(kwokPath: string): Promise<void> {
    const { folder } = this
    const kubeconfig = `--kubeconfig=${this.kubeconfig}`
    this.#run('kube-controller-manager', [
      kubeconfig,
      '--leader-elect=false',
      '--use-service-account-credentials=false',
      `--service-account-private-key-file=${folder}/sa.key`,
      '--horizontal-pod-autoscaler-sync-period=2s',
      // On a busy machine kwok tells too seldom that its machines live, and pods are not ready from then on.
      '--node-monitor-grace-period=1h',
      ...['--bind-address=127.0.0.1', `--secure-port=${await freePort()}`],
    ])
    this.#run('kube-scheduler', [
      kubeconfig,
      '--leader-elect=false',
      ...['--bind-address=127.0.0.1', `--secure-port=${await freePort()}`],
    ])
    this.#started.push(
      ServerProcess.start(kwokPath, [kubeconfig, '--manage-all-nodes=true'], join(folder, 'kwok.log')),
    )
  }

  #writeCredentials(): void {
    const [key, pub] = [join(this.folder, 'sa.key'), join(this.folder, 'sa.pub')]
    execFileSync('openssl', ['genrsa', '-out', key, '2048'], { stdio: 'pipe' })
    execFileSync('openssl', ['rsa', '-in', key, '-pubout', '-out', pub], { stdio: 'pipe' })
    writeFileSync(join(this.folder, 'tokens.csv'), `${token},admin,1,"system:masters"\n`)
    const server = `https://127.0.0.1:${this.port}`
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      clusters: [{ name: 'test', cluster: { server, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'admin', user: { token } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
    }
    writeFileSync(this.kubeconfig, JSON.stringify(config))
  }

  async #startEtcdAndApi(): Promise<void> {
    const [client, peer] = [await freePort(), await freePort()].map((port) => `http://127.0.0.1:${port}`)
    this.#started.push(
      ServerProcess.start(
        this.program('etcd'),
        [
          ...['--data-dir', join(this.folder, 'etcd')],
          ...['--listen-client-urls', client!, '--advertise-client-urls', client!],
          ...['--listen-peer-urls', peer!, '--initial-advertise-peer-urls', peer!],
          ...['--initial-cluster', `default=${peer!}`],
        ],
        join(this.folder, 'etcd.log'),
      ),
    )
    mkdirSync(join(this.folder, 'certificates'))
    this.#run('kube-apiserver', [
      `--etcd-servers=${client!}`,
      ...['--bind-address=127.0.0.1', `--secure-port=${this.port}`, `--cert-dir=${this.folder}/certificates`],
      `--service-account-key-file=${this.folder}/sa.pub`,
      `--service-account-signing-key-file=${this.folder}/sa.key`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--token-auth-file=${this.folder}/tokens.csv`,
      ...['--authorization-mode=RBAC', '--service-cluster-ip-range=10.96.0.0/16'],
    ])
    await until(
      'the API server',
      async () => (await this.kubectl(['get', '--raw', '/readyz'])).code === 0,
      60_000,
      250,
    )
  }

  #run(program: string, args: readonly string[]): void {
    const log = join(this.folder, `${program}.log`)
    this.#started.push(ServerProcess.start(this.program(program), args, log))
  }

  program(name: string): string {
    return join(this.programs, name)
  }

  /** Of commands that speak to it. What they learn of an API server they keep in their home. */
  get env(): NodeJS.ProcessEnv {
    const home = join(this.folder, 'home')
    return { ...process.env, KUBECONFIG: this.kubeconfig, HOME: home, XDG_CACHE_HOME: join(home, 'cache') }
  }

  /** A command as a person runs it, who is its admin. */
  kubectl(args: readonly string[], input?: string): Promise<CommandResult> {
    return this.#command(this.program('kubectl'), args, input)
  }

  helm(args: readonly string[], input?: string): Promise<CommandResult> {
    return this.#command(helmProgram() ?? 'helm', args, input)
  }

  /**
   * What `kubectl get -o json` answers.
   *
   * @throws Error with what kubectl says
   */
  async get<T>(...args: readonly string[]): Promise<T> {
    return JSON.parse(succeeded(await this.kubectl(['get', '-o', 'json', ...args]))) as T
  }

  /** @throws Error with what kubectl says */
  async apply(objects: readonly object[], ...args: readonly string[]): Promise<void> {
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects })
    succeeded(await this.kubectl(['apply', '--server-side', ...args, '-f', '-'], list))
  }

  #command(program: string, args: readonly string[], input?: string): Promise<CommandResult> {
    return new Promise((resolve) => {
      const child = execFile(
        program,
        args,
        { env: this.env, maxBuffer: 64 * 1024 ** 2, timeout: 300_000 },
        (error, stdout, stderr) =>
          resolve({
            code: error ? Number(error.code) || 1 : 0,
            stdout,
            stderr: stderr || (error?.message ?? ''),
          }),
      )
      child.stdin?.end(input)
    })
  }

  async end(): Promise<void> {
    for (const server of this.#started.toReversed()) await server.end('SIGKILL')
  }
}

/**
 * Standard output of a command that went well.
 *
 * @throws Error with what it says
 */
export function succeeded({ code, stdout, stderr }: CommandResult): string {
  if (code !== 0) throw new Error(stderr || stdout)
  return stdout
}
