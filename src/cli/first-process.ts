import { existsSync } from 'node:fs'

const shell = '/bin/sh'

/**
 * An init in the words of every shell: it starts the command behind it, passes signals on and ends as that does; waiting, a shell reaps
 * whatever dies. What is typed at a terminal (Ctrl-C), and its closing, reach the command by themselves, and twice would be a second signal.
 */
const init = `
child= early= heard=
pass() { heard=1; if [ -n "$child" ]; then kill -"$1" "$child" 2>/dev/null; else early=$1; fi; }
typed() { heard=1; [ -t 0 ] || [ -t 1 ] || [ -t 2 ] || pass "$1"; }
trap 'pass TERM' TERM
trap 'typed INT' INT
trap 'typed HUP' HUP
trap 'typed QUIT' QUIT
{ "$@" <&3 3<&- & } 3<&0
child=$!
[ -z "$early" ] || pass "$early"
code=
while :; do
  heard=
  wait "$child"
  last=$?
  # 127 after a signal: the wait before it has told the end already.
  [ "$last" = 127 ] && [ -n "$code" ] || code=$last
  [ -n "$heard" ] || break
done
exit "$code"
`

/**
 * The first process of a container gets every orphan, and has to reap it: Node reaps its own children alone, so that the decoders of a
 * dead engine would stay as zombies. Where this is the first process, it becomes a shell that does it and starts us below it.
 *
 * Returns where it is not the first, or the system has no shell.
 */
export function runBelowInit(args: readonly string[]): void {
  if (process.pid !== 1 || !existsSync(shell)) return
  process.execve?.(shell, [shell, '-c', init, 'gantry-init', process.execPath, ...process.execArgv, ...args])
}
