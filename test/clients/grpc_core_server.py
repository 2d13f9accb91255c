"""A server of the KServe v2 protocol on gRPC's own C++, the one that Triton's gRPC is built on. Ends with its stdin.

Usage: grpc_core_server.py [KEY CERTIFICATE]

Listens on a free port of 127.0.0.1, with TLS where a key and a certificate (PEM files) are named, and prints the port. Models give back
what they get, as the output "OUT"; the model "none" is not there.
"""

import sys
from concurrent import futures

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc


class Echo(service_pb2_grpc.GRPCInferenceServiceServicer):
    def ServerMetadata(self, request, context):
        return service_pb2.ServerMetadataResponse(name="core", version="1")

    def ModelReady(self, request, context):
        return service_pb2.ModelReadyResponse(ready=True)

    def ModelMetadata(self, request, context):
        tensor = service_pb2.ModelMetadataResponse.TensorMetadata
        return service_pb2.ModelMetadataResponse(
            name=request.name,
            inputs=[tensor(name="IN", datatype="UINT8", shape=[4])],
            outputs=[tensor(name="OUT", datatype="UINT8", shape=[4])],
        )

    def ModelInfer(self, request, context):
        if request.model_name == "none":
            context.abort(grpc.StatusCode.NOT_FOUND, "there is no model 'none', é 100 %")
        given = request.inputs[0]
        output = service_pb2.ModelInferResponse.InferOutputTensor(name="OUT", datatype=given.datatype, shape=given.shape)
        return service_pb2.ModelInferResponse(
            model_name=request.model_name, outputs=[output], raw_output_contents=request.raw_input_contents
        )


unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
server = grpc.server(futures.ThreadPoolExecutor(4), options=unlimited)
service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Echo(), server)
if len(sys.argv) > 2:
    key, certificate = (open(path, "rb").read() for path in sys.argv[1:3])
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, certificate)]))
else:
    port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
sys.stdin.read()
server.stop(0)
