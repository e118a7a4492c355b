{{/* One name for everything in the release; the chart's own name is not said twice. */}}
{{- define "tutti.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What the Deployment finds its pod by; never changes in the life of a release. */}}
{{- define "tutti.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tutti.labels" -}}
{{ include "tutti.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* A value as a person writes it: Helm's numbers are floats, and 1000000 would come out as 1e+06. */}}
{{- define "tutti.plain" -}}
{{- if and (kindIs "float64" .) (eq (floor .) (float64 .)) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}
