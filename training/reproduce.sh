#!/usr/bin/env bash
# reproduce.sh DATA RUN [options of ppe.train]: everything from nothing to files as they are published, in RUN/models
# (or $MODELS). Resumable: start it again and it goes on.
# START=photographs.npz leaves the first stage out and begins the second with weights of its end.
set -euo pipefail
cd "$(dirname "$0")"
[ $# -ge 2 ] || { echo "usage: reproduce.sh DATA RUN [options of python -m ppe.train]" >&2; exit 2; }
data=$1 run=$2; shift 2
given=" $* "
python=${PYTHON:-python3} models=${MODELS:-$run/models} start=${START:-}
# glibc gives large buffers back to the kernel after every step, and gets them again in the next.
export MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=268435456 MALLOC_TRIM_THRESHOLD_=3000000000 MALLOC_TOP_PAD_=67108864
export ONEDNN_PRIMITIVE_CACHE_CAPACITY=512

train() { # train STEPS [options]: STEPS unless --steps or --minutes were given
  local length=(--steps "$1"); shift
  case "$given" in *" --steps"* | *" --minutes"*) length=() ;; esac
  "$python" -m ppe.train --data "$data" --cache "$run/cache" "${length[@]}" "$@"
}

folder=$(realpath -m "$run")
render() { # render SEED COUNT [options of sim dataset]: into RUN/frames-SEED, unless it is there
  (cd .. && npm run --silent sim -- dataset --out "$folder/frames-$1" --seed "$1" --count "$2" --width 960 "${@:3}")
}

render 313 360 --sites dock --subject headgear
render 331 240 --sites press-line yard gate --subject headgear
render 353 220 --sites gate
render 367 283 --sites press-line
render 373 260 --sites dock yard gate
render 379 200 --sites yard dock press-line --subject headgear
frames=("$folder"/frames-{313,331,353,367,373,379})

# Photographs, from nothing but the context path.
if [ -z "$start" ]; then
  train 21000 --out "$run/photographs" "$@"
  start=$run/photographs/last.pt
fi
# On from there with frames of the simulator beside them.
train 24000 --out "$run/frames" --simulator "${frames[@]}" --simulator-share 0.2 --init "$start" --lr 1.3e-3 --seed 11 "$@"

"$python" -m ppe.export "$run/frames/last.pt" --models "$models" --data "$data" --cache "$run/cache" --simulator "${frames[@]}"
for name in ppe_detect ppe_detect_int8 ppe_detect_fp16; do
  "$python" -m ppe.evaluate "$models/$name/1/model.onnx" --data "$data" --cache "$run/cache" --json "$run/$name.json"
done
"$python" -m ppe.speed --models "$models"
