/** One of the Python examples of Triton's client repository, with the arguments of each of its runs. */
export type Example = Readonly<{
  script: string
  /** Each is a run of its own; the script passes where all of them end with 0. `IMAGE` is a picture. */
  runs?: readonly string[]
  /** Runs against a server that loads by request only, with as many models as it expects. */
  models?: 7 | 8
  /** What it needs that Gantry has not. */
  needs?: string
}>

const both = ['', '-i grpc -u localhost:8001']
const picture = '-m densenet_onnx -s INCEPTION -c 1 -b 1 IMAGE'

const compressed = (kind: string) => {
  const [request, response] = [
    `--request-compression-algorithm ${kind}`,
    `--response-compression-algorithm ${kind}`,
  ]
  return [request, response, `${request} ${response}`]
}

export const examples: readonly Example[] = [
  { script: 'ensemble_image_client.py', runs: both.map((protocol) => `${protocol} -c 1 IMAGE`) },
  { script: 'grpc_client.py' },
  { script: 'grpc_explicit_byte_content_client.py' },
  { script: 'grpc_explicit_int8_content_client.py' },
  { script: 'grpc_explicit_int_content_client.py' },
  { script: 'grpc_image_client.py', runs: [picture, `-a ${picture}`, `-a --streaming ${picture}`] },
  {
    script: 'image_client.py',
    runs: [
      ...both.flatMap((protocol) => [`${protocol} ${picture}`, `${protocol} -a ${picture}`]),
      `-i grpc -u localhost:8001 -a --streaming ${picture}`,
      '-m densenet_onnx -s VGG -c 3 IMAGE',
      '-m densenet_onnx -c 3 IMAGE',
    ],
  },
  { script: 'memory_growth_test.py', runs: ['', '-i grpc'] },
  { script: 'reuse_infer_objects_client.py', runs: both },
  { script: 'simple_grpc_aio_infer_client.py' },
  { script: 'simple_grpc_aio_sequence_stream_infer_client.py', runs: ['', '-d'] },
  { script: 'simple_grpc_async_infer_client.py' },
  { script: 'simple_grpc_cudashm_client.py', needs: 'CUDA shared memory' },
  { script: 'simple_grpc_custom_args_client.py' },
  { script: 'simple_grpc_custom_repeat.py', needs: 'decoupled models' },
  { script: 'simple_grpc_health_metadata.py' },
  { script: 'simple_grpc_infer_client.py', runs: ['', '-C gzip', '-C deflate', '-t 10'] },
  { script: 'simple_grpc_keepalive_client.py' },
  { script: 'simple_grpc_model_control.py', models: 8 },
  { script: 'simple_grpc_sequence_stream_infer_client.py', runs: ['', '-d', '-o 100'] },
  { script: 'simple_grpc_sequence_sync_infer_client.py', runs: ['', '-d'] },
  { script: 'simple_grpc_shm_client.py' },
  { script: 'simple_grpc_shm_string_client.py' },
  { script: 'simple_grpc_string_infer_client.py' },
  { script: 'simple_http_aio_infer_client.py' },
  { script: 'simple_http_async_infer_client.py' },
  { script: 'simple_http_cudashm_client.py', needs: 'CUDA shared memory' },
  { script: 'simple_http_health_metadata.py' },
  {
    script: 'simple_http_infer_client.py',
    runs: ['', ...['gzip', 'deflate'].flatMap(compressed)],
  },
  { script: 'simple_http_model_control.py', models: 7 },
  { script: 'simple_http_sequence_sync_infer_client.py', runs: ['', '-d'] },
  { script: 'simple_http_shm_client.py' },
  { script: 'simple_http_shm_string_client.py' },
  { script: 'simple_http_string_infer_client.py' },
]

/** Fewest scripts that pass, of those that need nothing that is not there. */
export const examplesReach = 25
