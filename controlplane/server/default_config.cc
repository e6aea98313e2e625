// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/config.h"

namespace rocegw::server {

std::string_view DefaultConfigText() {
  return R"(# Configuration of rocegw-controller. Every key is optional; shown are the defaults.
# Check a file with: rocegw-controller --check-config --config FILE

# Certificate authority, certificates, store (SQLite), admin socket. Readable by nobody else. --state-dir goes before
# this.
state_dir: /var/lib/rocegw-controller

# Names in certificates are spiffe://TRUST_DOMAIN/... Fixed once the authority is made.
trust_domain: rocegw

# Where agents and clients call, with TLS.
address: "[::]:7471"

# DNS names and addresses for the controller's certificate, besides host name and addresses of this host: of a load
# balancer, of an address translation.
names: []

# "HOST:PORT" of all controllers, as joining hosts reach them. Default: the addresses of this host.
controllers: []

# "HOST:PORT" under which other controllers of the fleet reach this one. Default: the first address of this host.
# replica_address: 192.0.2.1:7471

# Whoever may open it is administrator (mode 0600). Default: admin.sock in state_dir.
# admin_socket: /var/lib/rocegw-controller/admin.sock

# trace, debug, info, warn, error. SIGHUP reads this key again.
log_level: info

# /metrics, /livez and /readyz; "": none.
metrics:
  address: 127.0.0.1:7472

store:
  # sqlite: one file in state_dir, one controller. etcd: several controllers.
  backend: sqlite
  # etcd:
  #   endpoints: ["192.0.2.1:2379", "192.0.2.2:2379", "192.0.2.3:2379"]
  #   root: /rocegw/
  #   ca_file: /etc/rocegw/etcd-ca.crt          # without: no TLS
  #   certificate_file: /etc/rocegw/etcd.crt
  #   key_file: /etc/rocegw/etcd.key

# In a pod of a Kubernetes cluster (1.30 or later): nodes of this cluster join by the token of their agent's pod,
# without a join token. The API server confirms account and node of the token; the node's name must begin with the
# gateway's. It takes the right to create tokenreviews.
kubernetes:
  join: false
  # NAMESPACE/NAME of the agents' service account. Whoever can run pods as this account on a node can join as that node.
  # agent_account: rocegw/rocegw-agent
  # Audience that the tokens were made for; others are refused.
  audience: rocegw-join
  # NAMESPACE/NAME of an existing ConfigMap where the controller writes join.yaml: the fleet's addresses and authority,
  # for agents. It takes the right to patch this object.
  # join_config_map: rocegw/rocegw-join
  # Folder with the controller's own token and with the authority of the API server, as kubelet mounts it.
  service_account_dir: /var/run/secrets/kubernetes.io/serviceaccount

# Prometheus server that judges the gates of migrations (rocegwctl migrate plan --gate). Without: plans with gates are
# refused.
prometheus:
  url: ""                                     # http://prometheus:9090, or https://HOST/PATH
  # ca_file: /etc/rocegw/prometheus-ca.crt    # without: the authorities of the system
  # token_file: /etc/rocegw/prometheus-token  # bearer token, read for each query

# Donors of remote memory get data of other hosts. A donor waits until an administrator approves it (rocegwctl approve
# donor), unless its gateway is named here; "*" names all. A change holds for donors that appear later.
donors:
  approved_gateways: []

# Certificates are renewed when half of their time has passed.
certificates:
  node_lifetime: 24h
  server_lifetime: 90d

# The keys of the fleet's gateways (fleet_keys_file of agents) are replaced this often, and when a gateway is deleted or
# revoked; the same for all controllers. A gateway whose agent reaches no controller for longer loses its channels with
# others. A change replaces all keys at once.
fleet_key_period: 24h

# How long the past of the store is kept for watches that fell behind.
keep_history: 1h

# New audit records are sealed this often, by one of the controllers: until then, an edit of one is not found.
seal_interval: 60s
)";
}

}  // namespace rocegw::server
