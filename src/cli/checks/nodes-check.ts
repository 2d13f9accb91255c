import type { Admin } from 'kafkajs'
import type { MemberData } from '../../cluster/member-data.js'
import { PeerClient } from '../../cluster/peer-client.js'
import { memberDataOf } from '../../cluster/slot-assigner.js'
import type { ClusterConfig } from '../../config/cluster.js'
import type { ServerConfig } from '../../config/server.js'
import { GantryError } from '../../errors.js'
import { silentLog } from '../../lifecycle/log.js'
import type { Finding } from '../findings.js'

const answersWithinMs = 3_000

/** The nodes that are in the group now, beside the one of these settings; none where the login may not see them. */
export async function otherMembers(
  admin: Admin,
  { id, node }: Pick<ClusterConfig, 'id' | 'node'>,
): Promise<readonly MemberData[]> {
  const described = await admin.describeGroups([`gantry.${id}`]).catch(() => undefined)
  return (described?.groups ?? [])
    .flatMap(({ members }) => members)
    .flatMap(({ memberMetadata }) =>
      memberMetadata.length === 0 ? [] : (memberDataOf(memberMetadata) ?? []),
    )
    .filter((member) => member.node !== node)
}

/** Whether this node could ask the others: by their addresses, with its token, and as its TLS settings are. */
export async function checkNodes(
  subject: string,
  members: readonly MemberData[],
  { tls }: Pick<ClusterConfig, 'tls'>,
  { token }: Pick<ServerConfig, 'token'>,
): Promise<Finding[]> {
  const peers = new PeerClient(token, tls, silentLog())
  try {
    return await Promise.all(
      members.map((member) => nodeFinding(`${subject} node ${member.node}`, member, peers)),
    )
  } finally {
    await peers.close()
  }
}

async function nodeFinding(subject: string, { url }: MemberData, peers: PeerClient): Promise<Finding> {
  try {
    await peers.ask(url, { method: 'GET', path: '/api/v1/status', withinMs: answersWithinMs })
    return { subject, state: 'ok', detail: `it answers at ${url}` }
  } catch (error) {
    const detail = error instanceof GantryError ? error.message : String(error)
    const fix = 'correct cluster.tls or server.token here, or cluster.url there'
    return { subject, state: 'failed', detail, fix }
  }
}
