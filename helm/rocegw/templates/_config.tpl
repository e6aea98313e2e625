{{/* Configuration files of the daemons: what the values say, and what the chart alone decides. */}}

{{- define "rocegw.gatewayConfig" -}}
{{- $gateway := .Values.gateway -}}
{{- $host := ternary "0.0.0.0" "127.0.0.1" $gateway.metrics.expose -}}
{{- $address := printf "%s:%d" $host (int $gateway.metrics.port) -}}
{{- $own := dict "runtime_dir" $gateway.runtimeDir "ports" $gateway.ports "metrics" (dict "address" $address) -}}
{{- toYaml (merge $own (deepCopy $gateway.config)) -}}
{{- end -}}

{{- define "rocegw.agentConfig" -}}
{{- $agent := .Values.agent -}}
{{- $host := ternary "0.0.0.0" "127.0.0.1" $agent.metrics.expose -}}
{{- $address := printf "%s:%d" $host (int $agent.metrics.port) -}}
{{- $own := dict "state_dir" $agent.stateDir "gateway_socket" (printf "%s/grpc.sock" .Values.gateway.runtimeDir) -}}
{{- $_ := set $own "attach_rules" $agent.attachRules -}}
{{- $_ := set $own "metrics" (dict "address" $address) -}}
{{- if $agent.migration.adaptersDir -}}
{{- $_ := set $own "migration" (dict "adapters_dir" $agent.migration.adaptersDir) -}}
{{- end -}}
{{- if $agent.donorsDir -}}
{{- $_ := set $own "donors_dir" $agent.donorsDir -}}
{{- end -}}
{{- $plugin := $agent.devicePlugin -}}
{{- if $plugin.enabled -}}
{{- $kubernetes := dict "enabled" true "device_plugin_dir" (printf "%s/device-plugins" $plugin.kubeletDir) -}}
{{- $_ := set $kubernetes "pod_resources_socket" (printf "%s/pod-resources/kubelet.sock" $plugin.kubeletDir) -}}
{{- $_ := set $kubernetes "pod_log_dir" $plugin.podLogDir -}}
{{- $_ := set $kubernetes "library_dir" (ternary $plugin.libraryDir "" (ne $plugin.library "")) -}}
{{- if $plugin.cdiDir -}}
{{- $_ := set $kubernetes "cdi_dir" $plugin.cdiDir -}}
{{- end -}}
{{- if include "rocegw.agentCallsApi" . -}}
{{- $_ := set $kubernetes "api_server" true -}}
{{- end -}}
{{- if $agent.dra.enabled -}}
{{- $dra := dict "enabled" true "pools" $agent.dra.pools "shared" $agent.dra.shared -}}
{{- $_ := set $dra "plugins_dir" (printf "%s/plugins" $plugin.kubeletDir) -}}
{{- $_ := set $dra "registry_dir" (printf "%s/plugins_registry" $plugin.kubeletDir) -}}
{{- $_ := set $kubernetes "dra" $dra -}}
{{- end -}}
{{- $_ := set $own "kubernetes" $kubernetes -}}
{{- end -}}
{{- toYaml (merge $own (deepCopy $agent.config)) -}}
{{- end -}}

{{- define "rocegw.controllerConfig" -}}
{{- $controller := .Values.controller -}}
{{- $name := printf "%s-controller" (include "rocegw.fullname" .) -}}
{{- $names := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) -}}
{{- $store := dict "backend" $controller.store -}}
{{- if eq $controller.store "etcd" -}}
{{- $etcd := dict "endpoints" $controller.etcd.endpoints "root" $controller.etcd.root -}}
{{- if $controller.etcd.tlsSecretName -}}
{{- $_ := set $etcd "ca_file" "/etc/rocegw-etcd/ca.crt" -}}
{{- $_ := set $etcd "certificate_file" "/etc/rocegw-etcd/tls.crt" -}}
{{- $_ := set $etcd "key_file" "/etc/rocegw-etcd/tls.key" -}}
{{- end -}}
{{- $_ := set $store "etcd" $etcd -}}
{{- end -}}
{{- $own := dict "state_dir" "/var/lib/rocegw-controller/state" "trust_domain" .Values.trustDomain -}}
{{- $_ := set $own "address" "[::]:7471" -}}
{{- $_ := set $own "names" (concat $names $controller.names) -}}
{{- $_ := set $own "controllers" (include "rocegw.controllerAddresses" . | fromYamlArray) -}}
{{- $_ := set $own "admin_socket" "/run/rocegw-controller/admin.sock" -}}
{{- $_ := set $own "metrics" (dict "address" (printf "%s:7472" $controller.metricsHost)) -}}
{{- $_ := set $own "store" $store -}}
{{- if $controller.donors.approvedGateways -}}
{{- $_ := set $own "donors" (dict "approved_gateways" $controller.donors.approvedGateways) -}}
{{- end -}}
{{- if include "rocegw.joinsByItself" . -}}
{{- $kubernetes := dict "join" true "audience" (include "rocegw.joinAudience" .) -}}
{{- $_ := set $kubernetes "agent_account" (printf "%s/%s-agent" .Release.Namespace (include "rocegw.fullname" .)) -}}
{{- $_ := set $kubernetes "join_config_map" (printf "%s/%s-join" .Release.Namespace (include "rocegw.fullname" .)) -}}
{{- $_ := set $own "kubernetes" $kubernetes -}}
{{- end -}}
{{- toYaml (merge $own (deepCopy $controller.config)) -}}
{{- end -}}

{{/* Of (dict "root" $ "component" NAME "file" NAME "config" TEXT) */}}
{{- define "rocegw.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "rocegw.metadata" . | nindent 2 }}
data:
  {{ .file }}: |
    {{- .config | nindent 4 }}
{{- end -}}
