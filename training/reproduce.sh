#!/usr/bin/env bash
# reproduce.sh DATA RUN MINUTES [options of ppe.train]: train, export into ../models, score and time. Resumable.
set -euo pipefail
cd "$(dirname "$0")"
[ $# -ge 3 ] || { echo "usage: reproduce.sh DATA RUN MINUTES [options of python -m ppe.train]" >&2; exit 2; }
data=$1 run=$2 minutes=$3; shift 3
python=${PYTHON:-python3}
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000 MALLOC_TOP_PAD_=268435456
export ONEDNN_PRIMITIVE_CACHE_CAPACITY=4096
"$python" -m ppe.train --data "$data" --out "$run" --minutes "$minutes" "$@"
"$python" -m ppe.export "$run/last.pt" --models ../models --data "$data" --cache "$run/cache"
for name in ppe_detect ppe_detect_int8 ppe_detect_fp16; do
  "$python" -m ppe.evaluate "../models/$name/1/model.onnx" --data "$data" --cache "$run/cache" --json "$run/$name.json"
done
"$python" -m ppe.speed --models ../models
