{{/* The controller's pod: the same in a StatefulSet and in a Deployment. Of (dict "root" $ "component" "controller" ...). */}}
{{- define "rocegw.controllerPod" -}}
{{- $controller := .values -}}
{{- $authority := include "rocegw.authoritySecret" .root -}}
metadata:
  {{- include "rocegw.podMetadata" . | nindent 2 }}
spec:
  {{- include "rocegw.podAccount" . | nindent 2 }}
  {{- with $controller.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with include "rocegw.podPlacement" . }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- if and (eq $controller.store "etcd") (not $controller.affinity) }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "rocegw.selector" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    # Files that the controller has made keep their modes: keys are 0600.
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- if $authority }}
  initContainers:
    # Puts the authority where the controller keeps it, the key last: with it the state is whole.
    - name: authority
      {{- include "rocegw.container" .root | nindent 6 }}
      command: [sh, -ec]
      args:
        - |
          state=/var/lib/rocegw-controller/state
          [ ! -e "$state/ca.key" ] || exit 0
          umask 077
          mkdir -p "$state"
          cp /etc/rocegw-authority/tls.key "$state/ca.key.new"
          cp /etc/rocegw-authority/tls.crt "$state/ca.crt"
          mv "$state/ca.key.new" "$state/ca.key"
      securityContext:
        {{- include "rocegw.leastPrivilege" dict | nindent 8 }}
      resources:
        {{- toYaml $controller.resources | nindent 8 }}
      volumeMounts:
        - {name: state, mountPath: /var/lib/rocegw-controller}
        - {name: authority, mountPath: /etc/rocegw-authority, readOnly: true}
  {{- end }}
  containers:
    - name: rocegw-controller
      {{- include "rocegw.container" .root | nindent 6 }}
      command: [rocegw-controller]
      args: [--config, /etc/rocegw/rocegw-controller.yaml]
      env:
        # Where rocegwctl finds it, for kubectl exec.
        - name: ROCEGW_CONTROLLER
          value: unix:/run/rocegw-controller/admin.sock
      ports:
        - name: grpc
          containerPort: 7471
        - name: metrics
          containerPort: 7472
      {{- include "rocegw.probes" dict | nindent 6 }}
      securityContext:
        {{- include "rocegw.leastPrivilege" dict | nindent 8 }}
      resources:
        {{- toYaml $controller.resources | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/rocegw, readOnly: true}
        - {name: state, mountPath: /var/lib/rocegw-controller}
        - {name: admin, mountPath: /run/rocegw-controller}
        {{- if include "rocegw.joinsByItself" .root }}
        {{- include "rocegw.apiTokenMount" .root | nindent 8 }}
        {{- end }}
        {{- if and (eq $controller.store "etcd") $controller.etcd.tlsSecretName }}
        - {name: etcd-tls, mountPath: /etc/rocegw-etcd, readOnly: true}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "rocegw.fullname" .root }}-controller
    - name: admin
      emptyDir:
        medium: Memory
        sizeLimit: 1Mi
    {{- if eq $controller.store "etcd" }}
    # The authority and a certificate of this pod: both are made anew with it.
    - name: state
      emptyDir:
        medium: Memory
        sizeLimit: 16Mi
    {{- end }}
    {{- if include "rocegw.joinsByItself" .root }}
    {{- include "rocegw.apiTokenVolume" (dict "mode" "0440") | nindent 4 }}
    {{- end }}
    {{- if $authority }}
    - name: authority
      secret:
        secretName: {{ $authority }}
        defaultMode: 0440
    {{- end }}
    {{- if and (eq $controller.store "etcd") $controller.etcd.tlsSecretName }}
    - name: etcd-tls
      secret:
        secretName: {{ $controller.etcd.tlsSecretName }}
        defaultMode: 0440
    {{- end }}
{{- end -}}
