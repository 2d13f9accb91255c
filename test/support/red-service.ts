import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addModel, redDetector } from './onnx-models.js'
import { redPicture } from './red-pictures.js'
import { TestService, type ServiceOptions } from './service.js'

/** A service whose one camera, `yard`, sees the same red picture twenty times a second, which costs next to nothing. */
export class RedService implements AsyncDisposable {
  private constructor(
    readonly folder: string,
    readonly options: ServiceOptions,
    public service: TestService,
  ) {}

  static async start(options: Pick<ServiceOptions, 'server' | 'trust'> = {}): Promise<RedService> {
    const folder = mkdtempSync(join(tmpdir(), 'gantry-red-'))
    addModel(folder, 'red', { onnx: redDetector('uint8-nhwc'), config: 'max_batch_size: 4' })
    writeFileSync(join(folder, 'red.png'), await redPicture({ widthPx: 64, heightPx: 64 }, 230))
    const whole: ServiceOptions = {
      ...options,
      pipeline: {
        mediaRoot: folder,
        models: { repository: folder },
        ensemble: 'red',
        cameras: [
          { id: 'yard', url: join(folder, 'red.png'), sampleFps: 20, staticScene: { maxAgeMs: 60_000 } },
        ],
      },
    }
    const red = new RedService(folder, whole, await TestService.start(whole))
    await red.service.cameraIs('yard', 'live')
    return red
  }

  /** Ends the service and starts it again on its ports and with its store. */
  async restart(): Promise<void> {
    const before = this.service
    await before.end()
    this.service = await TestService.start({ ...this.options, like: before })
    await this.service.cameraIs('yard', 'live')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
