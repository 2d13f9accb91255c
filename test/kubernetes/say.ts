/** Progress of the test, on standard error. */
export const say = (line: string): void => void process.stderr.write(`[kubernetes] ${line}\n`)
