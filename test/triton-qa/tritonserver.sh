#!/bin/bash
# Stands where Triton's suites expect `tritonserver`: its flags become a pipeline file, and this process becomes `gantry serve`.
here=$(dirname "$(readlink -f "$0")")
pipeline=$(node "$here/tritonserver.mjs" "$@") || exit 1
exec node "$here/../../dist/cli/main.js" serve --json -c "$pipeline"
