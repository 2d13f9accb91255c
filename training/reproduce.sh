#!/usr/bin/env bash
# reproduce.sh DATA RUN [options of ppe.train]: everything from nothing to files as they are published, in RUN/models
# (or $MODELS). Resumable: start it again and it goes on.
# START=machines.npz begins with the fourth and last stage, from weights of the third one's end.
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
  "$python" -m ppe.train --data "$data" --cache "$run/cache" --evaluate-every 4000 "${length[@]}" "$@"
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
render 389 320 --sites dock yard --subject headgear
frames=("$folder"/frames-{313,331,353,367,373,379})
more=("${frames[@]}" "$folder/frames-389")
# With more frames, and half of the photographs drawn showing a machine.
machines=(--simulator "${more[@]}" --simulator-share 0.25 --emphasis 2 --lr 1.3e-3)

if [ -z "$start" ]; then
  # Photographs, from nothing but the context path.
  train 21000 --out "$run/photographs" "$@"
  # On from there with frames of the simulator beside them.
  train 18500 --out "$run/frames" --simulator "${frames[@]}" --simulator-share 0.2 --init "$run/photographs/last.pt" --lr 1.3e-3 --seed 11 "$@"
  train 20000 --out "$run/machines" "${machines[@]}" --init "$run/frames/last.pt" --seed 13 "$@"
  start=$run/machines/last.pt
fi
train 20000 --out "$run/end" "${machines[@]}" --init "$start" --seed 17 "$@" # once more, from there

"$python" -m ppe.export "$run/end/last.pt" --models "$models" --data "$data" --cache "$run/cache" --simulator "${more[@]}"
for name in ppe_detect ppe_detect_int8 ppe_detect_fp16; do
  "$python" -m ppe.evaluate "$models/$name/1/model.onnx" --data "$data" --cache "$run/cache" --json "$run/$name.json"
done
"$python" -m ppe.speed --models "$models"
