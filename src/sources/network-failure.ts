/** Why a camera cannot be reached, and what to look at; one clause each, as ffmpeg and the gates both tell it. */
export const networkFailures = {
  refused: 'connection refused: check host and port, and that the camera is on',
  timedOut: 'connection timed out: check host, port and firewalls',
  unknownHost: "host name not found: check its spelling and this machine's DNS",
  unreachable: 'host unreachable: check the address and the way to its network',
  reset: 'connection reset: the camera or something on the way ended it',
  noTls: 'no encrypted connection: check that the port is the one for rtsps or https',
} as const
