#!/usr/bin/env bash
# reproduce.sh DATA RUN [options of ppe.train]: everything from nothing to the published files. Resumable: start it again and it goes on.
set -euo pipefail
cd "$(dirname "$0")"
[ $# -ge 2 ] || { echo "usage: reproduce.sh DATA RUN [options of python -m ppe.train]" >&2; exit 2; }
data=$1 run=$2; shift 2
case " $* " in *" --steps"* | *" --minutes"*) ;; *) set -- --steps 26000 "$@" ;; esac
python=${PYTHON:-python3} models=${MODELS:-../models}
# glibc gives large buffers back to the kernel after every step, and gets them again in the next.
export MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=268435456 MALLOC_TRIM_THRESHOLD_=3000000000 MALLOC_TOP_PAD_=67108864
export ONEDNN_PRIMITIVE_CACHE_CAPACITY=256

frames=()
render() { # render SEED COUNT [options of sim dataset]
  local folder; folder=$(realpath -m "$run")/frames-$1
  (cd .. && npm run --silent sim -- dataset --out "$folder" --seed "$1" --count "$2" --width 960 "${@:3}")
  frames+=("$folder")
}
render 183 420 --sites yard
render 191 360 --sites dock
render 227 346 --sites yard
render 229 339 --sites yard
render 311 800 --sites dock press-line gate
render 313 360 --sites dock --subject headgear
render 331 240 --sites press-line yard gate --subject headgear

"$python" -m ppe.train --data "$data" --simulator "${frames[@]}" --simulator-share 0.36 --out "$run" "$@"
"$python" -m ppe.export "$run/last.pt" --models "$models" --data "$data" --cache "$run/cache"
for name in ppe_detect ppe_detect_int8 ppe_detect_fp16; do
  "$python" -m ppe.evaluate "$models/$name/1/model.onnx" --data "$data" --cache "$run/cache" --json "$run/$name.json"
done
"$python" -m ppe.speed --models "$models"
