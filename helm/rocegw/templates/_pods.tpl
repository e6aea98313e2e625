{{/* Parts of pods that components share. */}}

{{/* Of (dict "root" $ "component" NAME "values" VALUES "config" TEXT): metadata of a pod. No versions in labels: another version
of the chart alone is no reason for new pods. */}}
{{- define "rocegw.podMetadata" -}}
annotations:
  # A changed configuration makes new pods, where the update strategy lets it.
  checksum/config: {{ .config | sha256sum }}
  {{- with .values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
labels:
  {{- include "rocegw.selector" . | nindent 2 }}
  {{- with .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Of the same: no pod gets a token for the API server by itself; _api.tpl has those that are asked for. */}}
{{- define "rocegw.podAccount" -}}
serviceAccountName: {{ include "rocegw.fullname" .root }}-{{ .component }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
terminationGracePeriodSeconds: {{ int .values.terminationGracePeriodSeconds }}
{{- end -}}

{{- define "rocegw.updateStrategy" -}}
type: {{ .type }}
{{- if eq .type "RollingUpdate" }}
rollingUpdate:
  maxUnavailable: {{ dig "rollingUpdate" "maxUnavailable" 1 . }}
{{- end }}
{{- end -}}

{{/* Of the gateway's values: how a changed pod replaces a running one. "surge": it takes over from the running gateway, with its
programs; that needs ports on kernel sockets. "roll": nodes are drained one after another. "delete": nothing happens by itself. */}}
{{- define "rocegw.gatewayUpdate" -}}
{{- $surge := ne .updateStrategy.type "OnDelete" }}
{{- range .ports }}{{ if ne (default "udp" .mode) "udp" }}{{ $surge = false }}{{ end }}{{ end }}
{{- with .updateStrategy.rollingUpdate }}{{ if .maxUnavailable }}{{ $surge = false }}{{ end }}{{ end }}
{{- if $surge }}surge{{ else if eq .updateStrategy.type "RollingUpdate" }}roll{{ else }}delete{{ end }}
{{- end -}}

{{/* Of the same: a DaemonSet's strategy. */}}
{{- define "rocegw.gatewayUpdateStrategy" -}}
{{- $update := include "rocegw.gatewayUpdate" . }}
{{- if eq $update "surge" -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: {{ dig "maxSurge" 1 (default dict .updateStrategy.rollingUpdate) }}
  maxUnavailable: 0
{{- else if eq $update "roll" -}}
{{- include "rocegw.updateStrategy" .updateStrategy }}
{{- else -}}
type: OnDelete
{{- end }}
{{- end -}}

{{- define "rocegw.podPlacement" -}}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "rocegw.nodePriority" -}}
{{- if .root.Values.priorityClass.create -}}
priorityClassName: {{ include "rocegw.fullname" .root }}-node
{{- else if .values.priorityClassName -}}
priorityClassName: {{ .values.priorityClassName }}
{{- end -}}
{{- end -}}

{{- define "rocegw.container" -}}
image: {{ include "rocegw.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{/* Of (dict "add" LIST): what every container gives up. */}}
{{- define "rocegw.leastPrivilege" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  {{- with .add }}
  add: {{ toJson . }}
  {{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Of (dict "host" HOST "port" PORT "ready" COMMAND): probes of a daemon's pages, or readiness by a command. Startup waits for the first configuration, liveness asks only whether
the daemon's loop turns, readiness whether it runs with a configuration; none of them asks for the controller. */}}
{{- define "rocegw.probes" -}}
startupProbe:
  httpGet: {path: /readyz, port: {{ default "metrics" .port }}{{ with .host }}, host: {{ . }}{{ end }}}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: {{ default "metrics" .port }}{{ with .host }}, host: {{ . }}{{ end }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  {{- with .ready }}
  exec:
    command: {{ toJson . }}
  {{- else }}
  httpGet: {path: /readyz, port: {{ default "metrics" .port }}{{ with .host }}, host: {{ . }}{{ end }}}
  {{- end }}
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: 3
{{- end -}}
