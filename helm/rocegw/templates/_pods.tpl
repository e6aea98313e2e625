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

{{/* Of (dict "host" HOST): probes of a daemon's pages. Startup waits for the first configuration, liveness asks only whether
the daemon's loop turns, readiness whether it runs with a configuration; none of them asks for the controller. */}}
{{- define "rocegw.probes" -}}
startupProbe:
  httpGet: {path: /readyz, port: metrics{{ with .host }}, host: {{ . }}{{ end }}}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: metrics{{ with .host }}, host: {{ . }}{{ end }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: metrics{{ with .host }}, host: {{ . }}{{ end }}}
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: 3
{{- end -}}
