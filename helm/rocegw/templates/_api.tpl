{{/* Calls to the API server: which pods get a token, and what its account may do. */}}

{{/* "true" where agents call it. */}}
{{- define "rocegw.agentCallsApi" -}}
{{- if or .Values.agent.podIdentity .Values.agent.dra.enabled -}}true{{- end -}}
{{- end -}}

{{/* Rules of the agents' ClusterRole. Reading is by name only: nothing is listed or watched. */}}
{{- define "rocegw.agentRules" -}}
{{- if .Values.agent.podIdentity -}}
# Service accounts of pods and labels of their namespaces, for pools that name those.
- apiGroups: [""]
  resources: [pods, namespaces]
  verbs: [get]
{{ end -}}
{{- if .Values.agent.dra.enabled -}}
# Claims that kubelet names or has named, by name; the owner of the node's slices; the slices, which rocegw-slices lets each node write
# for itself only.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [get]
- apiGroups: [""]
  resources: [nodes]
  verbs: [get]
- apiGroups: [resource.k8s.io]
  resources: [resourceslices]
  verbs: [list, create, update, delete]
{{ end -}}
{{- end -}}

{{/* "true" where nodes join by themselves. */}}
{{- define "rocegw.joinsByItself" -}}
{{- if and .Values.agent.enabled .Values.agent.join.automatic -}}
{{- if not .Values.controller.enabled -}}
{{- fail "agent.join.automatic needs controller.enabled: the controller asks the API server of its own cluster" -}}
{{- end -}}
{{- if semverCompare "<1.30-0" .Capabilities.KubeVersion.Version -}}
{{- fail "agent.join.automatic needs Kubernetes 1.30 or later: earlier ones do not tell the node of a token" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{/* Audience of the tokens with which nodes join: no other server takes them, and the controller takes no others. */}}
{{- define "rocegw.joinAudience" -}}
{{- printf "rocegw-join.%s.%s" .Release.Namespace (include "rocegw.fullname" .) -}}
{{- end -}}

{{/* Of (dict "mode" MODE): a token for the API server, renewed by kubelet, as a volume; pods get none by themselves. */}}
{{- define "rocegw.apiTokenVolume" -}}
- name: api-token
  projected:
    defaultMode: {{ .mode }}
    sources:
      - serviceAccountToken: {path: token, expirationSeconds: 3607}
      - configMap:
          name: kube-root-ca.crt
          items: [{key: ca.crt, path: ca.crt}]
{{- end -}}

{{- define "rocegw.apiTokenMount" -}}
- {name: api-token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end -}}
