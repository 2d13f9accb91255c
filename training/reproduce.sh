#!/usr/bin/env bash
# reproduce.sh DATA RUN [options of ppe.train]: everything from nothing to files as they are published, in RUN/models
# (or $MODELS). Resumable: start it again and it goes on.
# START=stage-8.npz leaves the first eight stages out and begins the ninth with weights of their end.
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
render 367 283 --sites press-line
render 373 260 --sites dock yard gate
render 379 200 --sites yard dock press-line --subject headgear

if [ -z "$start" ]; then
  render 183 420 --sites yard
  render 191 360 --sites dock
  render 227 346 --sites yard
  render 311 600 --sites dock press-line gate
  render 347 220 --sites press-line
  render 353 220 --sites gate
  render 359 353 --sites dock --subject headgear
  frames=("$folder"/frames-{183,191,227,311,313,331,347,353,359,367})
  # Photographs, from nothing but the context path.
  train 8400 --out "$run/stage-1" "$@"
  # On from there with frames of the simulator, and the same for longer with fewer of them.
  train 8400 --out "$run/stage-2" --simulator "${frames[@]}" --init "$run/stage-1/last.pt" --lr 1.5e-3 "$@"
  train 15600 --out "$run/stage-3" --simulator "${frames[@]}" --simulator-share 0.25 --init "$run/stage-2/last.pt" --lr 1.5e-3 --seed 11 "$@"
  train 9600 --out "$run/stage-4" --simulator "${frames[@]}" --simulator-share 0.22 --init "$run/stage-3/last.pt" --lr 1.2e-3 --seed 13 "$@"
  train 5400 --out "$run/stage-5" --simulator "${frames[@]}" --simulator-share 0.24 --init "$run/stage-4/last.pt" --lr 1.5e-3 --seed 19 "$@"
  "$python" -m ppe.weights "$run/mixed-5.pt" "$run/stage-5/start.pt:0.5" "$run/stage-5/last.pt:0.5"
  train 12000 --out "$run/stage-6" --simulator "${frames[@]}" --simulator-share 0.3 --init "$run/mixed-5.pt" --lr 1.4e-3 --seed 23 "$@"
  # Without the first three sets of frames, of the yard and of the dock without crews: it was trained so.
  train 11000 --out "$run/stage-7" --simulator "${frames[@]:3}" --simulator-share 0.3 --init "$run/stage-6/last.pt" --lr 1.3e-3 --seed 29 "$@"
  train 10800 --out "$run/stage-8" --simulator "$folder"/frames-{367,373} --simulator-share 0.15 --init "$run/stage-7/last.pt" --lr 1.3e-3 --seed 41 "$@"
  "$python" -m ppe.weights "$run/mixed-8.pt" "$run/stage-8/start.pt:0.3" "$run/stage-8/last.pt:0.7"
  start=$run/mixed-8.pt
fi
frames=("$folder"/frames-{331,367,373,313})
train 9600 --out "$run/stage-9" --simulator "${frames[@]}" --simulator-share 0.2 --init "$start" --lr 1.3e-3 --seed 47 "$@"
# A short one for the demo clips, with more frames: its end mixed with its start, which is better on photographs.
frames=("$folder/frames-379" "${frames[@]}")
train 1800 --out "$run/stage-10" --simulator "${frames[@]}" --simulator-share 0.4 --init "$run/stage-9/last.pt" --lr 8e-4 --seed 53 "$@"
"$python" -m ppe.weights "$run/end.pt" "$run/stage-10/start.pt:0.35" "$run/stage-10/last.pt:0.65"

"$python" -m ppe.export "$run/end.pt" --models "$models" --data "$data" --cache "$run/cache" --simulator "${frames[@]}"
for name in ppe_detect ppe_detect_int8 ppe_detect_fp16; do
  "$python" -m ppe.evaluate "$models/$name/1/model.onnx" --data "$data" --cache "$run/cache" --json "$run/$name.json"
done
"$python" -m ppe.speed --models "$models"
