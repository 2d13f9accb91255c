{{- define "gantry.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $own := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $own .Values.fullnameOverride | trunc 46 | trimSuffix "-" -}}
{{- end -}}

{{- define "gantry.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gantry.labels" -}}
{{ include "gantry.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "gantry.image" -}}
{{- $tag := printf "%s%s" .Chart.AppVersion (ternary "-cuda" "" .Values.gpu.enabled) -}}
{{- printf "%s:%s" .Values.image.repository (default $tag .Values.image.tag) -}}
{{- end -}}

{{- define "gantry.scheme" -}}
{{- ternary "https" "http" (ne .Values.tls.secret "") -}}
{{- end -}}

{{/* Models alone, without cameras. */}}
{{- define "gantry.modelsAlone" -}}
{{- if and (hasKey .Values.pipeline "engines") (eq (toString .Values.pipeline.engines) "0") -}}yes{{- end -}}
{{- end -}}

{{/* Longer than the service may take to finish what it has: docs/stopping.md. */}}
{{- define "gantry.graceSeconds" -}}
{{- $drain := dig "server" "drainSeconds" 25 .Values.pipeline | int -}}
{{- add $drain 10 .Values.preStopSeconds -}}
{{- end -}}

{{/* The pipeline of the values, with what only the chart can know. */}}
{{- define "gantry.pipeline" -}}
{{- $server := dict "httpPort" 8000 "grpcPort" 8001 "metricsPort" 8002 -}}
{{- if .Values.token.secret -}}
{{- $_ := set $server "token" "${GANTRY_TOKEN}" -}}
{{- else if not (dig "server" "allowedHosts" "" .Values.pipeline) -}}
{{- /* Without a token a client may use no name that the service does not know. */ -}}
{{- $names := list (include "gantry.fullname" .) (printf "%s.%s" (include "gantry.fullname" .) .Release.Namespace) -}}
{{- $_ := set $server "allowedHosts" (concat $names (list (printf ".%s.svc" .Release.Namespace) (printf ".%s.svc.cluster.local" .Release.Namespace))) -}}
{{- end -}}
{{- if .Values.tls.secret -}}
{{- $_ := set $server "tls" (dict "cert" "/etc/gantry-tls/tls.crt" "key" "/etc/gantry-tls/tls.key") -}}
{{- end -}}
{{- if not (dig "server" "host" "" .Values.pipeline) -}}
{{- $_ := set $server "host" "0.0.0.0" -}}
{{- end -}}
{{- $own := dict "server" $server "store" (dict "path" "/data") -}}
{{- if .Values.pipeline.cluster -}}
{{- $url := printf "%s://${POD_NAME}.%s-nodes.%s.svc:8000" (include "gantry.scheme" .) (include "gantry.fullname" .) .Release.Namespace -}}
{{- $cluster := dict "node" "${POD_NAME}" "url" $url -}}
{{- if and .Values.tls.secret (not .Values.pipeline.cluster.tls) -}}
{{- $_ := set $cluster "tls" (dict "ca" "/etc/gantry-tls/ca.crt") -}}
{{- end -}}
{{- $_ := set $own "cluster" $cluster -}}
{{- end -}}
{{- if and .Values.gpu.enabled (gt (int .Values.gpu.count) 1) (not (dig "inference" "devices" "" .Values.pipeline)) -}}
{{- $_ := set $own "inference" (dict "devices" "auto") -}}
{{- end -}}
{{- mergeOverwrite (deepCopy .Values.pipeline) $own | toYaml -}}
{{- end -}}
