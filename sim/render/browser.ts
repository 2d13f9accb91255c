import { createServer, type Server } from 'node:http'
import { fileURLToPath } from 'node:url'
import { type Browser, type Page, chromium } from 'playwright-core'
import { type Rolldown, build } from 'vite'
import { type WebSocket, WebSocketServer } from 'ws'
import { RenderError } from '../errors.js'
import { type PageJob, frameHeaderBytes } from './protocol.js'

/** One RGBA picture, top row first. Borrowed for the call it is handed to. */
export interface Picture {
  readonly frame: number
  readonly rgba: Buffer
}

const chromiumFlags = [
  '--no-sandbox',
  '--headless=new',
  '--use-gl=angle',
  '--use-angle=swiftshader',
  '--disable-gpu-sandbox',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-quic',
]
const startTimeoutMs = 60_000

/** A headless Chromium with the simulator's page in it, over a loopback socket. One job at a time. */
export class RenderBrowser implements AsyncDisposable {
  private constructor(
    readonly browser: Browser,
    readonly page: Page,
    readonly server: Server,
    readonly sockets: WebSocketServer,
    readonly socket: WebSocket,
    readonly pageErrors: readonly string[],
  ) {}

  /** @throws RenderError `GANTRY_ENVIRONMENT` if Chromium or the page does not start. */
  static async open(): Promise<RenderBrowser> {
    const script = await bundledPage()
    const server = createServer((request, response) => {
      const isScript = request.url === '/page.js'
      response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' })
      response.end(
        isScript ? script : '<!doctype html><meta charset="utf-8"><script src="/page.js"></script>',
      )
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    if (address === null || typeof address === 'string')
      throw new RenderError('the loopback server has no port')
    const sockets = new WebSocketServer({ server, path: '/frames', maxPayload: 64 * 1024 * 1024 })
    const connected = new Promise<WebSocket>((resolve) => sockets.once('connection', resolve))
    let browser: Browser | undefined
    try {
      browser = await chromium.launch({
        executablePath: process.env['SIM_CHROMIUM'] ?? '/usr/bin/chromium',
        args: chromiumFlags,
        timeout: startTimeoutMs,
      })
      const pageErrors: string[] = []
      const page = await browser.newPage()
      page.on('pageerror', (error) => pageErrors.push(error.message))
      page.on('console', (message) => {
        if (message.type() === 'error') pageErrors.push(message.text())
      })
      const failed = new Promise<never>((_, reject) =>
        page.once('pageerror', (error) =>
          reject(new RenderError(`the page failed: ${error.message}`, error)),
        ),
      )
      failed.catch(() => undefined)
      await page.goto(`http://127.0.0.1:${address.port}/`)
      const socket = await within(
        Promise.race([connected, failed]),
        startTimeoutMs,
        () => `the page did not connect: ${pageErrors.join('; ')}`,
      )
      return new RenderBrowser(browser, page, server, sockets, socket, pageErrors)
    } catch (error) {
      await close(browser, sockets, server)
      throw error instanceof RenderError ? error : new RenderError('Chromium did not start', error)
    }
  }

  /**
   * Draws the job's frames in order, and hands each over when `take` has ended with the one before. Resolves when it
   * has ended with the last. When `take` fails the page is told to stop, and this rejects once it has: what it still
   * sends belongs to no later job.
   *
   * @throws RenderError `GANTRY_ENVIRONMENT` if the page fails or its connection ends.
   */
  async draw(job: PageJob, take: (picture: Picture) => void | Promise<void>): Promise<void> {
    const { socket } = this
    let taken = Promise.resolve()
    let failure: Error | undefined
    const takeNext = async (picture: Picture): Promise<void> => {
      if (failure === undefined) {
        try {
          await take(picture)
        } catch (error) {
          failure = error instanceof Error ? error : new RenderError(String(error))
          socket.send('{"type":"stop"}')
        }
      }
      socket.send('{"type":"taken"}')
    }
    await new Promise<void>((resolve, reject) => {
      const end = (error?: Error): void => {
        socket.off('message', onMessage)
        socket.off('close', onClose)
        this.page.off('crash', onCrash)
        if (error === undefined) resolve()
        else reject(error)
      }
      const onClose = (): void =>
        end(new RenderError(`the page's connection ended: ${this.pageErrors.join('; ')}`))
      const onCrash = (): void => end(new RenderError('the page crashed'))
      const onMessage = (data: Buffer, isBinary: boolean): void => {
        if (isBinary) {
          const picture = { frame: data.readUInt32LE(0), rgba: data.subarray(frameHeaderBytes) }
          taken = taken.then(() => takeNext(picture))
          return
        }
        const message = JSON.parse(data.toString()) as { type: 'done' } | { type: 'failed'; message: string }
        if (message.type === 'failed')
          end(new RenderError(`${message.message} ${this.pageErrors.join('; ')}`))
        else void taken.then(() => end(failure))
      }
      socket.on('message', onMessage)
      socket.on('close', onClose)
      this.page.on('crash', onCrash)
      socket.send(JSON.stringify({ type: 'job', job }))
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await close(this.browser, this.sockets, this.server)
  }
}

async function close(browser: Browser | undefined, sockets: WebSocketServer, server: Server): Promise<void> {
  await browser?.close()
  for (const client of sockets.clients) client.terminate()
  sockets.close()
  await new Promise((resolve) => server.close(resolve))
}

async function bundledPage(): Promise<string> {
  const root = fileURLToPath(new URL('../page', import.meta.url))
  const built = await build({
    root,
    configFile: false,
    logLevel: 'error',
    build: {
      write: false,
      minify: false,
      target: 'es2022',
      lib: { entry: 'main.ts', formats: ['iife'], name: 'sim' },
    },
  })
  const outputs = (Array.isArray(built) ? built : [built]) as Rolldown.RolldownOutput[]
  const chunk = outputs[0]?.output.find((output) => output.type === 'chunk')
  if (chunk?.type !== 'chunk') throw new RenderError('the page did not bundle')
  return chunk.code
}

async function within<T>(promise: Promise<T>, timeoutMs: number, message: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new RenderError(message())), timeoutMs)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
