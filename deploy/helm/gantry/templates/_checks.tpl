{{/* What a schema cannot say, or says so that nobody knows what to do. */}}
{{- define "gantry.checks" -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository is missing: build the image from the Dockerfile of the project, push it to a registry of yours, and name it" -}}
{{- end -}}
{{- include "gantry.checkSettings" . -}}
{{- include "gantry.checkNodes" . -}}
{{- include "gantry.checkAutoscaling" . -}}
{{- end -}}

{{- define "gantry.checkSettings" -}}
{{- $set := dict "server.httpPort" "the ports are 8000, 8001 and 8002" "server.grpcPort" "the ports are 8000, 8001 and 8002" "server.metricsPort" "the ports are 8000, 8001 and 8002" "server.token" "name its Secret in token.secret" "server.tls" "name its Secret in tls.secret" "store.path" "the volume is at /data" "cluster.node" "it is the name of the pod" "cluster.url" "it is the address of the pod" -}}
{{- range $path, $instead := $set -}}
{{- $parts := splitList "." $path -}}
{{- if hasKey (default dict (get $.Values.pipeline (first $parts))) (last $parts) -}}
{{- fail (printf "pipeline.%s is set by the chart: %s; leave it out" $path $instead) -}}
{{- end -}}
{{- end -}}
{{- if not (or .Values.token.secret (dig "server" "insecure" false .Values.pipeline)) -}}
{{- fail "token.secret is missing: whoever reaches the service would be its admin. Make a Secret (kubectl create secret generic gantry --from-literal=token=$(openssl rand -hex 24)) and set token.secret=gantry" -}}
{{- end -}}
{{- end -}}

{{- define "gantry.checkNodes" -}}
{{- $most := ternary .Values.replicas .Values.autoscaling.maxReplicas (eq .Values.autoscaling.by "none") | int -}}
{{- if and (gt $most 1) (not .Values.pipeline.cluster) (not (include "gantry.modelsAlone" .)) -}}
{{- fail (printf "%d nodes without pipeline.cluster would each run every camera: set pipeline.cluster.id and brokers, or replicas: 1" $most) -}}
{{- end -}}
{{- if .Values.pipeline.cluster -}}
{{- if not (or (dig "sinks" "kafka" "brokers" "" .Values.pipeline) (dig "cluster" "kafka" "brokers" "" .Values.pipeline)) -}}
{{- fail "pipeline.cluster needs brokers, by which the nodes share the cameras: set pipeline.sinks.kafka.brokers, or pipeline.cluster.kafka.brokers" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gantry.checkAutoscaling" -}}
{{- with .Values.autoscaling -}}
{{- if ne .by "none" -}}
{{- if lt (int .maxReplicas) (int .minReplicas) -}}
{{- fail (printf "autoscaling.maxReplicas (%d) is below autoscaling.minReplicas (%d)" (int .maxReplicas) (int .minReplicas)) -}}
{{- end -}}
{{- if not (or .cameraLoad .pendingRequests) -}}
{{- fail "autoscaling has nothing to go by: set autoscaling.cameraLoad or autoscaling.pendingRequests" -}}
{{- end -}}
{{- if and .cameraLoad (include "gantry.modelsAlone" $) -}}
{{- fail "autoscaling.cameraLoad: there are no cameras (pipeline.engines is 0): set it to 0, and autoscaling.pendingRequests" -}}
{{- end -}}
{{- if and (eq .by "keda") (not .prometheusAddress) -}}
{{- fail "autoscaling.prometheusAddress is missing: KEDA asks a Prometheus, such as http://prometheus.monitoring.svc:9090" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
