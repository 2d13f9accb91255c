import type { ReflectionService } from '@grpc/reflection'
import descriptor, { type IDescriptorProto } from 'protobufjs/ext/descriptor.js'
import { grpcRoot } from '../../kserve/grpc-schema.js'

/**
 * The descriptors that reflection gives out, one file for each package. protobufjs names the entries of a map as the field itself;
 * protoc, and clients that check what they are given, want `<Field>Entry`.
 */
export function reflectedPackage(): ConstructorParameters<typeof ReflectionService>[0] {
  const { file: files = [] } = grpcRoot.toDescriptor('proto3')
  for (const file of files) file.messageType?.forEach(nameMapEntries)
  const fileDescriptorProtos = files.map((file) =>
    Buffer.from(descriptor.FileDescriptorProto.encode(file).finish()),
  )
  return { inference: { format: 'Protocol Buffer 3 DescriptorProto', type: {}, fileDescriptorProtos } }
}

function nameMapEntries(message: IDescriptorProto): void {
  for (const nested of message.nestedType ?? []) {
    nameMapEntries(nested)
    const field = message.field?.find(({ typeName }) => typeName === nested.name)
    if (nested.options?.mapEntry !== true || typeof field?.name !== 'string') continue
    nested.name = `${pascalCase(field.name)}Entry`
    field.typeName = nested.name
  }
}

function pascalCase(name: string): string {
  return name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())
}
