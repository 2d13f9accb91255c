import { execFile, spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

/** Version of Apache Kafka the tests run against. */
export const kafkaVersion = '4.1.1'
/** slf4j 1.7 is what this Kafka logs through; without a binding a broker that fails to start says nothing. */
const slf4jVersion = '1.7.36'

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>gantry.test</groupId>
  <artifactId>kafka-broker</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${kafkaVersion}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>${slf4jVersion}</version></dependency>
  </dependencies>
</project>
`

/** Folder of the broker's jars, kept over runs. */
export function jarsFolder(): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  return join(cache, 'gantry-test', `kafka-${kafkaVersion}`)
}

function runs(command: string, arg: string): boolean {
  return spawnSync(command, [arg], { stdio: 'ignore' }).status === 0
}

/**
 * Makes sure that a broker can be started: Java is there, and so are the jars, resolved through Maven when they are not.
 *
 * @returns the folder of the jars, or why there is none.
 */
export async function resolveJars(): Promise<{ jars: string } | { missing: string }> {
  if (!runs('java', '-version')) return { missing: 'no java on the PATH (Debian: openjdk-17-jre-headless)' }
  const jars = jarsFolder()
  const cached = await stat(jars).catch(() => undefined)
  if (cached !== undefined) return { jars }
  if (!runs('mvn', '-version')) return { missing: `no Kafka jars in ${jars} and no mvn (Debian: maven)` }
  try {
    await download(jars)
    return { jars }
  } catch (error) {
    return {
      missing: `Kafka jars could not be resolved: ${error instanceof Error ? error.message : 'unknown'}`,
    }
  }
}

async function download(jars: string): Promise<void> {
  await mkdir(dirname(jars), { recursive: true })
  const work = await mkdtemp(`${jars}.part-`)
  try {
    const pomPath = join(work, 'pom.xml')
    const target = join(work, 'jars')
    await writeFile(pomPath, pom)
    const args = ['-B', '-q', '-f', pomPath, 'dependency:copy-dependencies', '-DincludeScope=runtime']
    await promisify(execFile)('mvn', [...args, `-DoutputDirectory=${target}`], { timeout: 300_000 })
    if ((await readdir(target)).length === 0) throw new Error('Maven resolved nothing')
    // Another run may have been quicker; its jars are as good.
    await rename(target, jars).catch(async (error: unknown) => {
      if ((await stat(jars).catch(() => undefined)) === undefined) throw error
    })
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
