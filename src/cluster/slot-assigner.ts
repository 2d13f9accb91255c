import { AssignerProtocol, type GroupMember, type PartitionAssigner } from 'kafkajs'
import { assignSlots, type SlotNode } from './assign-slots.js'
import { decodeMemberData, encodeMemberData, type MemberData } from './member-data.js'
import { sharedLayout } from './node-differences.js'
import { nodeWeights } from './node-weights.js'

/** Name under which all members must know the assigner; another version of it needs another name. */
const name = 'gantry-slots-1'

/**
 * {@link assignSlots} as an assigner of partitions of Kafka's consumer groups: the leader of the group gives partitions, which are slots,
 * to the members.
 *
 * @param own - asked whenever the group forms anew.
 * @param loads - what each slot asks for; asked of the leader alone.
 */
export function slotAssigner(
  topic: string,
  own: () => MemberData,
  loads: () => readonly number[],
): PartitionAssigner {
  return () => ({
    name,
    version: 1,
    protocol: ({ topics }) => ({
      name,
      metadata: AssignerProtocol.MemberMetadata.encode({
        version: 1,
        topics,
        userData: encodeMemberData(own()),
      }),
    }),
    assign: ({ members }) => {
      const assignment = assignSlots(slotNodes(members), loads())
      return Promise.resolve(
        members.map(({ memberId }) => ({
          memberId,
          memberAssignment: AssignerProtocol.MemberAssignment.encode({
            version: 1,
            assignment: { [topic]: [...(assignment.get(memberId) ?? [])] },
            userData: Buffer.alloc(0),
          }),
        })),
      )
    },
  })
}

/** A member that no node of ours has written, or one of another layout than the others, is given nothing. */
function slotNodes(members: readonly GroupMember[]): SlotNode[] {
  const all = members.flatMap(({ memberId, memberMetadata }) => {
    const data = memberDataOf(memberMetadata)
    return data === undefined ? [] : [{ id: memberId, data }]
  })
  const layout = sharedLayout(all.map(({ data }) => data))
  const told = all.filter(({ data }) => data.layout === layout)
  const weights = nodeWeights(told.map(({ data }) => data.capacity))
  return told.map(({ id, data }, index) => ({ id, weight: weights[index] ?? 0, held: data.held }))
}

/** Of a member as the group's leader or a description of the group has it. */
export function memberDataOf(memberMetadata: Buffer): MemberData | undefined {
  const decoded = AssignerProtocol.MemberMetadata.decode(memberMetadata)
  return decoded === null ? undefined : decodeMemberData(decoded.userData)
}
