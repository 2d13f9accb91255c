import { Command, Option } from 'commander'
import type { CommandContext } from '../command-context.js'
import { exitCodes } from '../failure.js'
import { allGood, printFindings, type Finding } from '../findings.js'
import { libraryChoices, type LibraryChoice } from '../gpu/cuda-packages.js'
import type { GpuPlace } from '../gpu/cuda-store.js'
import type { GpuPlan } from '../gpu/install-gpu.js'
import { cudaMajors } from '../gpu/nvidia-driver.js'
import type { GlobalOptions } from '../options.js'

type InstallOptions = GlobalOptions &
  Readonly<{ cuda?: string; libraries: LibraryChoice; tensorrt?: true; dryRun?: true }>

export function gpuCommand(context: CommandContext): Command {
  const gpu = new Command('gpu').description('bring what models need on an NVIDIA card, or remove it')
  gpu
    .command('install')
    .description(
      "ONNX Runtime's library for CUDA, and of CUDA and cuDNN what this machine lacks, by pip (for CUDA 12 also NuGet)",
    )
    .addOption(
      new Option(
        '--cuda <version>',
        'CUDA to install for (default: the newest that the driver runs)',
      ).choices(cudaMajors.map(String)),
    )
    .addOption(
      new Option('--libraries <which>', 'of CUDA and cuDNN: those that are missing, all, or none')
        .choices(libraryChoices)
        .default('missing'),
    )
    .option('--tensorrt', 'also the provider "tensorrt"; TensorRT 10 itself must be installed')
    .option('--dry-run', 'only say what would be brought, and how large it is')
    .action(async (_, self: Command) => install(self.optsWithGlobals<InstallOptions>(), context))
  gpu
    .command('remove')
    .description('remove what `gantry gpu install` brought')
    .action(async (_, self: Command) => remove(self.optsWithGlobals<GlobalOptions>(), context))
  return gpu
}

async function install(options: InstallOptions, context: CommandContext): Promise<void> {
  const { terminal } = context
  const { installGpu, placeOfThisInstallation, planGpu } = await import('../gpu/install-gpu.js')
  const place = placeOfThisInstallation()
  const request = {
    cuda: cudaMajors.find((major) => String(major) === options.cuda),
    libraries: options.libraries,
    tensorrt: options.tensorrt === true,
  }
  const plan = await planGpu(request, place, terminal.env)
  const { text, json } = await announcement(plan, place)
  if (options.dryRun === true) {
    terminal.out(options.json ? JSON.stringify(json, undefined, 2) : text)
    return
  }
  const quiet = options.quiet === true || options.json === true
  const say = (line: string) => void (quiet || terminal.err(`[gpu] ${line}`))
  say(text)
  await installGpu(plan, place, { env: terminal.env, quiet, say })
  const findings = await findingsOf(plan, place, context)
  printFindings(findings, terminal, options)
  if (!allGood(findings)) context.exit(exitCodes.runtime)
}

async function announcement({ cuda, toBring }: GpuPlan, { folder }: GpuPlace) {
  const { gigabytes, sizeOf } = await import('../gpu/install-gpu.js')
  const { downloadMb, neededMb } = sizeOf(toBring)
  const names = toBring.map(({ name }) => name)
  const sizes = `about ${gigabytes(downloadMb)} to download, ${gigabytes(neededMb)} of room in ${folder}`
  const text =
    names.length === 0
      ? `everything for CUDA ${cuda} is there`
      : `for CUDA ${cuda}: ${names.join(', ')}; ${sizes}`
  return { text, json: { cuda, toBring: names, downloadMb, neededMb, folder } }
}

/** What is there now, and whether a model runs on it. */
async function findingsOf(plan: GpuPlan, place: GpuPlace, { terminal }: CommandContext): Promise<Finding[]> {
  const { driver, cuda, libraries } = plan
  const [{ CudaStore }, { withCudaLibraries }] = await Promise.all([
    import('../gpu/cuda-store.js'),
    import('../../backends/onnxruntime/cuda-libraries.js'),
  ])
  const store = new CudaStore(place)
  const brought = libraries.flatMap(({ name }) => store.find(cuda, name) ?? [])
  const env = withCudaLibraries(terminal.env, place.folder, place.binaries)
  return [
    driver === undefined
      ? { subject: 'driver', state: 'skipped', detail: 'none here' }
      : { subject: 'driver', state: 'ok', detail: `${driver.version}, runs CUDA up to ${driver.cuda}` },
    { subject: 'onnxruntime', state: 'ok', detail: `${place.version}, with its library for CUDA ${cuda}` },
    {
      subject: 'libraries',
      state: 'ok',
      detail: brought.length === 0 ? 'none brought' : brought.join(', '),
    },
    driver === undefined ? await loading(plan, place, env) : await running(env),
  ]
}

/** Whoever asked for a card wants it to run: what is a warning for `doctor` is a failure here. */
async function running(env: NodeJS.ProcessEnv): Promise<Finding> {
  const { examineProvider } = await import('../doctor/onnx-runtime.js')
  const finding = await examineProvider('cuda', 0, env)
  return finding.state === 'ok' ? finding : { ...finding, state: 'failed' }
}

/** As far as it can be told without a driver, as while an image is built. */
async function loading(plan: GpuPlan, place: GpuPlace, env: NodeJS.ProcessEnv): Promise<Finding> {
  const { missingForProvider } = await import('../gpu/install-gpu.js')
  const subject = 'provider cuda'
  const missing = await missingForProvider(plan, place, env)
  if (missing.length === 0)
    return { subject, state: 'skipped', detail: 'nothing is missing but a driver, so no model was run' }
  return {
    subject,
    // Without any of ours they are to come from elsewhere, such as another layer of the image.
    state: plan.libraries.length === 0 ? 'warning' : 'failed',
    detail: `missing: ${missing.join(', ')}`,
    fix: 'gantry gpu install --libraries all',
  }
}

async function remove(options: GlobalOptions, { terminal }: CommandContext): Promise<void> {
  const { placeOfThisInstallation, removeGpu } = await import('../gpu/install-gpu.js')
  const place = placeOfThisInstallation()
  const { removed, left } = removeGpu(place)
  if (options.json) terminal.out(JSON.stringify({ removed, left }, undefined, 2))
  else if (!options.quiet) {
    terminal.out(removed ? `removed ${place.folder}` : 'nothing was brought')
    if (left.length > 0) terminal.out(`not brought by this command, so left there: ${left.join(', ')}`)
  }
}
