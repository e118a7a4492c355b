{{/* One name for everything in the release's namespace; the chart's own name is not said twice. */}}
{{- define "tutti.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of what is elsewhere, or may be: a release of another namespace may be named the same. No
     namespace has a dot, so no two of these are equal. */}}
{{- define "tutti.wide" -}}
{{- printf "%s.%s" .Release.Namespace (include "tutti.name" .) -}}
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

{{/* A value as a person writes it: Helm's numbers are floats, and 1000000 would come out as 1e+06; the
     words of a list stand between commas. */}}
{{- define "tutti.plain" -}}
{{- if kindIs "slice" . -}}
{{- join "," . -}}
{{- else if and (kindIs "float64" .) (eq (floor .) (float64 .)) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* The scheduler's name; only a shadow may have that of kube-scheduler, which binds the same pods. */}}
{{- define "tutti.scheduler" -}}
{{- if and (eq .Values.settings.schedulerName "default-scheduler") (ne .Values.settings.mode "shadow") -}}
{{- fail (printf "settings.schedulerName: kube-scheduler binds the pods of default-scheduler, and with settings.mode: %s Tutti would bind them, too; set settings.mode: shadow, or another name" .Values.settings.mode) -}}
{{- end -}}
{{- .Values.settings.schedulerName -}}
{{- end -}}

{{/* A replica's given name in the Lease, if any: replicas that share one would all lead. */}}
{{- define "tutti.identity" -}}
{{- with .Values.settings.identity -}}
{{- if gt (int $.Values.replicas) 1 -}}
{{- fail "settings.identity: several replicas need names of their own; leave it empty, or set replicas: 1" -}}
{{- end -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* What becomes of the admission policy: rendered, missing (the API server has no such kind) or off. */}}
{{- define "tutti.admission" -}}
{{- if not .Values.admission.enabled -}}
off
{{- else if gt (len .Values.settings.schedulerName) 63 -}}
{{- fail "admission.enabled: settings.schedulerName has to be a label's value, which has at most 63 characters" -}}
{{- else if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
rendered
{{- else -}}
missing
{{- end -}}
{{- end -}}

{{/* Where the volume for dumps is mounted, if it is one of its own. */}}
{{- define "tutti.dump.violations" -}}
{{- with .Values.settings.dumpDirectory -}}
{{- if ne (clean .) "/tmp" -}}
{{- clean . -}}
{{- end -}}
{{- end -}}
{{- end -}}
