{{/* The card is a limit: Kubernetes takes it as the request, too. */}}
{{- define "gantry.resources" -}}
{{- $resources := deepCopy .Values.resources -}}
{{- if .Values.gpu.enabled -}}
{{- $limits := default dict $resources.limits -}}
{{- $_ := set $limits .Values.gpu.resource (int .Values.gpu.count) -}}
{{- $_ := set $resources "limits" $limits -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}

{{- define "gantry.placement" -}}
{{- with .Values.topologySpread -}}
topologySpreadConstraints:
  {{- range . }}
  - topologyKey: {{ .topologyKey }}
    maxSkew: {{ .maxSkew }}
    whenUnsatisfiable: {{ .whenUnsatisfiable }}
    labelSelector:
      matchLabels: {{- include "gantry.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
