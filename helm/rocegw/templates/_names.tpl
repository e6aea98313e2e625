{{/* Names, labels and images that all objects share. */}}

{{- define "rocegw.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "rocegw.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "rocegw.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "rocegw.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Of (dict "root" $ "component" NAME): what selects its pods. Never changes during the life of a release. */}}
{{- define "rocegw.selector" -}}
app.kubernetes.io/name: {{ include "rocegw.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "rocegw.labels" -}}
{{ include "rocegw.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: rocegw
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "rocegw.metadata" -}}
name: {{ include "rocegw.fullname" .root }}-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "rocegw.labels" . | nindent 2 }}
{{- end -}}

{{- define "rocegw.image" -}}
{{- $image := .Values.image -}}
{{- if not $image.repository -}}
{{- fail "image.repository is needed: no image of rocegw is published yet; docs/operate/kubernetes.md says what it has to hold" -}}
{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "rocegw.authoritySecret" -}}
{{- $authority := .Values.controller.authority -}}
{{- if $authority.secretName -}}
{{- $authority.secretName -}}
{{- else if $authority.certManager.enabled -}}
{{- include "rocegw.fullname" . }}-authority
{{- end -}}
{{- end -}}

{{- define "rocegw.controllerAddresses" -}}
{{- $service := printf "%s-controller.%s.svc:7471" (include "rocegw.fullname" .) .Release.Namespace -}}
{{- toYaml (default (list $service) .Values.controller.addresses) -}}
{{- end -}}
