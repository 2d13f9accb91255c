/**
 * The parts of the public ONNX schema that describe a model without its nodes and weights.
 *
 * @see onnx/onnx, onnx/onnx.proto3
 */
export const onnxProto = `
syntax = "proto3";
package onnx;

message OperatorSetIdProto { string domain = 1; int64 version = 2; }
message StringStringEntryProto { string key = 1; string value = 2; }

message TensorShapeProto {
  message Dimension { oneof value { int64 dim_value = 1; string dim_param = 2; } string denotation = 3; }
  repeated Dimension dim = 1;
}

message TypeProto {
  message Tensor { int32 elem_type = 1; TensorShapeProto shape = 2; }
  message Other {}
  oneof value { Tensor tensor_type = 1; Other sequence_type = 4; Other map_type = 5; Tensor sparse_tensor_type = 8; Other optional_type = 9; }
}

message ValueInfoProto { string name = 1; TypeProto type = 2; string doc_string = 3; }
`
