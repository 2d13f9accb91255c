import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'

/** Whether a program of that name is on the PATH. */
export function onPath(name, path = process.env.PATH ?? '') {
  return path.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

const succeeds = (command, args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0

/** What the service itself cannot run without. */
export const serviceTools = [
  {
    name: 'ffmpeg',
    why: 'decodes the cameras',
    apt: ['ffmpeg'],
    found: () => onPath('ffmpeg') && onPath('ffprobe'),
  },
]

/** Whether the jars of the tests' Kafka broker were fetched before; `test/support/kafka-jars.ts` has the folder. */
function kafkaIsThere() {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'gantry-test')
  return existsSync(cache) && readdirSync(cache).some((name) => /^kafka-[\d.]+$/.test(name))
}

const gstRtspServer = `import gi; gi.require_version("GstRtspServer", "1.0"); from gi.repository import GstRtspServer`
const gstPlugins = ['qtdemux', 'h264parse', 'rtph264pay']

/** What tests talk to. Without one of them, the tests that need it are skipped. */
export const testTools = [
  ...serviceTools,
  {
    name: 'redis-server',
    why: 'tests of the cache',
    apt: ['redis-server'],
    found: () => onPath('redis-server'),
  },
  {
    name: 'mosquitto',
    why: 'tests against a broker of MQTT',
    apt: ['mosquitto', 'mosquitto-clients'],
    // Debian puts the broker where only root looks for programs.
    found: () => (onPath('mosquitto') || existsSync('/usr/sbin/mosquitto')) && onPath('mosquitto_sub'),
  },
  {
    name: 'java',
    why: 'tests against an Apache Kafka broker',
    apt: ['default-jre-headless'],
    found: () => onPath('java'),
  },
  {
    name: 'maven',
    why: 'fetches that broker, once',
    apt: ['maven'],
    found: () => onPath('mvn') || kafkaIsThere(),
  },
  {
    name: 'kcat',
    why: 'tests that read Kafka with a second client',
    apt: ['kcat'],
    found: () => onPath('kcat'),
  },
  {
    name: 'chromium',
    why: 'tests of the page, and the Vulkan driver of the webgpu tests',
    apt: ['chromium'],
    found: () => onPath('chromium'),
  },
  {
    name: 'libvulkan1',
    why: 'the webgpu tests',
    apt: ['libvulkan1'],
    found: () => ['x86_64', 'aarch64'].some((cpu) => existsSync(`/usr/lib/${cpu}-linux-gnu/libvulkan.so.1`)),
  },
  {
    name: 'gst-rtsp-server',
    why: 'tests against a second RTSP server',
    apt: [
      'python3-gi',
      'gir1.2-gst-rtsp-server-1.0',
      'gstreamer1.0-plugins-base',
      'gstreamer1.0-plugins-good',
      'gstreamer1.0-plugins-bad',
      'gstreamer1.0-tools',
    ],
    found: () =>
      succeeds('/usr/bin/python3', ['-c', gstRtspServer]) &&
      onPath('gst-inspect-1.0') &&
      gstPlugins.every((plugin) => succeeds('gst-inspect-1.0', ['--exists', plugin])),
  },
  // On another architecture these tests are skipped, and nothing is missing.
  ...(process.arch === 'x64'
    ? [
        {
          name: 'qemu-x86_64',
          why: 'tests of int8 on a processor without VNNI',
          apt: ['qemu-user'],
          found: () => onPath('qemu-x86_64'),
        },
      ]
    : []),
  {
    name: 'pip',
    why: 'tests of gantry gpu install',
    apt: ['python3-pip'],
    found: () => succeeds('python3', ['-m', 'pip', '--version']),
  },
  {
    name: 'strace',
    why: 'tests that nothing leaves the machine',
    apt: ['strace'],
    found: () => onPath('strace'),
  },
  {
    name: 'promtool',
    why: 'tests of the alert rules',
    apt: ['prometheus'],
    found: () => onPath('promtool'),
  },
  {
    name: 'zsh and fish',
    why: 'tests of the completion of shells',
    apt: ['zsh', 'fish'],
    found: () => onPath('zsh') && onPath('fish'),
  },
  {
    name: 'ip',
    why: 'tests of what Compose and systemd start, in a network of their own',
    apt: ['iproute2'],
    // Debian puts it where only root looks for programs.
    found: () => onPath('ip') || existsSync('/usr/sbin/ip'),
  },
  {
    name: 'systemd-analyze',
    why: 'tests of the systemd unit',
    apt: ['systemd'],
    found: () => onPath('systemd-analyze'),
  },
]

const isRoot = () => process.getuid?.() === 0
const aptLists = '/var/lib/apt/lists'

/** How to call apt without asking anybody anything; undefined where that cannot be done. */
function aptPrefix() {
  if (!onPath('apt-get')) return undefined
  if (isRoot()) return []
  return onPath('sudo') && succeeds('sudo', ['-n', 'true']) ? ['sudo', '-n'] : undefined
}

function aptGet(prefix, args) {
  const environment = ['env', 'DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1']
  const [command, ...rest] = [...prefix, ...environment, 'apt-get', '-q', ...args]
  const { status, stdout, stderr } = spawnSync(command, rest, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (status !== 0) process.stderr.write(`${stdout ?? ''}${stderr ?? ''}`)
  return status === 0
}

function aptInstall(prefix, packages, say) {
  const install = () => aptGet(prefix, ['install', '-y', '--no-install-recommends', ...packages])
  const hasLists = existsSync(aptLists) && readdirSync(aptLists).some((name) => name.includes('_Packages'))
  say(`installing ${packages.join(' ')} (apt-get) ...`)
  if (hasLists && install()) return true
  return aptGet(prefix, ['update']) && install()
}

/** Installs what is missing where that needs no password. Returns a line for each thing that is still missing. */
export function ensureTools(tools, say) {
  const absent = () => tools.filter((tool) => !tool.found())
  let missing = absent()
  if (missing.length === 0) return []
  const prefix = aptPrefix()
  if (prefix && !process.env.GANTRY_NO_APT) {
    aptInstall(prefix, [...new Set(missing.flatMap(({ apt }) => apt))], say)
    missing = absent()
  }
  return missing.map(
    ({ name, why, apt }) => `missing: ${name} (${why}). Install it: sudo apt-get install ${apt.join(' ')}`,
  )
}
