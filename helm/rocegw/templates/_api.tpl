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
# Claims that kubelet names, by name; the owner of the node's slices; the slices, which rocegw-slices lets each node write
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

{{/* A token for the API server, renewed by kubelet, as a volume; pods get none by themselves. */}}
{{- define "rocegw.apiTokenVolume" -}}
- name: api-token
  projected:
    defaultMode: 0400
    sources:
      - serviceAccountToken: {path: token, expirationSeconds: 3607}
      - configMap:
          name: kube-root-ca.crt
          items: [{key: ca.crt, path: ca.crt}]
{{- end -}}

{{- define "rocegw.apiTokenMount" -}}
- {name: api-token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end -}}
