import { expect, it, onTestFinished } from 'vitest'
import { cameraSettings, rtspCameras } from '../support/demo-cameras.js'
import { FakeNvidiaSmi } from '../support/fake-nvidia-smi.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { TestService } from '../support/service.js'
import { StandInFfmpeg } from '../support/stand-in-ffmpeg.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

/** A card that is full, and one of 2400 MiB that the engine is to use. */
const cards = (
  usedMiB: number,
) => `0, GPU-5e3a1f0c-7d42-4b7e-9c55-0a1b2c3d4e5f, 45, 2400, 2400, 30, 70, NVIDIA T4
1, GPU-6e3a1f0c-7d42-4b7e-9c55-0a1b2c3d4e5f, 45, 2400, ${usedMiB}, 30, 70, NVIDIA T4`

it(
  'R49: decodes on the card of the engine what its memory is for, the rest in software, and more when it knows what a decoder takes',
  { timeout: 120_000 },
  async () => {
    const smi = new FakeNvidiaSmi(tempDir(), cards(100))
    const ffmpeg = new StandInFfmpeg(tempDir(), 'card')
    const rtsp = await rtspCameras(3)
    onTestFinished(() => rtsp.stop())
    const repository = tempDir()
    addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
    const cameras = cameraSettings(rtsp, 3, 2).map((camera) => ({ ...camera, hwaccel: 'cuda' }))
    await using service = await TestService.start({
      pipeline: {
        models: { repository, control: 'none' },
        ensemble: 'red',
        modelServer: { enabled: false },
        decoding: { gpuMemoryShare: 0.5 },
        inference: { devices: [1] },
        cameras,
        log: { format: 'json' },
      },
      env: { PATH: `${ffmpeg.dir}:${smi.path}`, GANTRY__SERVER__GPU_METRICS_INTERVAL_MS: '100' },
    })
    const decoding = async () => {
      const views = await Promise.all(cameras.map(({ id }) => service.camera(id)))
      return views.map(({ id, status }) => ({ id, by: status.decode?.by, why: status.decode?.byReason }))
    }
    await until('three that are decoded', async () => (await decoding()).every(({ by }) => by), 60_000)
    const first = await decoding()
    expect(first.map(({ by }) => by).sort()).toEqual(['cuda-scaled', 'cuda-scaled', 'software'])
    const left = first.find(({ by }) => by === 'software')!
    expect(left.why).toBe(
      'decoders may take 1.2 GiB of GPU 1 (decoding.gpuMemoryShare), and 2 of 560 MiB are there',
    )
    for (const start of ffmpeg.starts) expect(start).toContain('-hwaccel cuda -hwaccel_device 1')
    const page = await service.metrics()
    expect(page).toContain('gantry_decoders_on_gpu{device="1"} 2')
    expect(page).toContain(`gantry_camera_decoder{camera="${left.id}",by="software"} 1`)
    expect(page).toContain(`gantry_source_warnings_total{camera="${left.id}",kind="hwaccel_fallback"} 1`)
    expect(service.stderr).toContain('(decoding.gpuMemoryShare)')

    smi.says(cards(100 + 2 * 300))
    await until('that it was measured', () => service.stderr.includes('memory that a decoder takes'), 30_000)
    // The one in software goes over by itself.
    const onCard = async () => (await decoding()).every(({ by, why }) => by === 'cuda-scaled' && why === '')
    await until('all on the card', onCard, 30_000)
    expect(await service.metrics()).toContain(
      `gantry_decoder_gpu_memory_bytes{device="1"} ${900 * 1024 ** 2}`,
    )
  },
)
