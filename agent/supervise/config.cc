// SPDX-License-Identifier: Apache-2.0
#include "agent/supervise/config.h"

#include <charconv>
#include <utility>

#include "controlplane/model/resource_name.h"
#include "gateway/far/fleet/announcement.h"
#include "proto/rules/resource_name.h"

namespace rocegw::agent {
namespace {

using process::CheckAbsolutePath;
using process::Section;

std::string CheckOptionalPath(const std::string& text) {
  return text.empty() ? "" : CheckAbsolutePath(text);
}

std::string CheckPluginFolder(const std::string& text) {
  std::string wrong = CheckAbsolutePath(text);
  if (wrong.empty() && text.size() > DevicePlugin::kLongestFolder) {
    wrong = "'" + text + "' has more than " + std::to_string(DevicePlugin::kLongestFolder) +
            " bytes: sockets in it would have too long a path";
  }
  return wrong;
}

std::string CheckDonorsFolder(const std::string& text) {
  return text.empty() ? "" : process::CheckSocketPath(text + "/" + far::kAgentSocket);
}

std::string CheckName(const std::string& text) {
  if (text.empty() || model::IsDnsLabel(text)) return "";
  return "'" + text + "' is not a DNS label (a-z, 0-9 and '-', at most 63)";
}

std::string CheckAnything(const std::string&) { return ""; }

std::string CheckPool(const std::string& text) {
  if (rules::MismatchWithPattern(text, "tenants/*/pools/*", false).empty()) return "";
  return "'" + text + "' is not a pool (tenants/T/pools/P)";
}

std::string CheckCgroup(const std::string& text) {
  const bool good = text == "/" || (text.starts_with('/') && !text.ends_with('/'));
  return good ? "" : "'" + text + "' is not a path in the cgroup tree (/system.slice/app.service)";
}

void ReadAttachRule(Section& section, std::vector<AttachRule>& rules) {
  AttachRule rule;
  section.Text("pool", CheckPool, rule.pool);
  section.TextList("uids", [&](const std::string& text) -> std::string {
    uint32_t uid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), uid);
    if (error != std::errc() || end != text.data() + text.size())
      return "'" + text + "' is not the number of a user";
    rule.uids.push_back(uid);
    return "";
  });
  section.TextList("cgroups", [&](const std::string& text) {
    std::string wrong = CheckCgroup(text);
    if (wrong.empty()) rule.cgroups.push_back(text);
    return wrong;
  });
  if (!section.Has("pool")) section.Problem("pool is needed");
  if (!section.Has("uids") && !section.Has("cgroups"))
    section.Problem("uids or cgroups are needed; cgroups: [/] lets everybody in");
  rules.push_back(std::move(rule));
}

void ReadDra(Section& section, KubernetesSettings& kubernetes) {
  DraSettings& dra = kubernetes.dra;
  section.Bool("enabled", dra.enabled);
  section.TextList("pools", [&](const std::string& text) -> std::string {
    dra.pools.push_back(text);
    return text == "*" ? "" : CheckPool(text);
  });
  section.Bool("shared", dra.shared);
  section.Text("plugins_dir", CheckAbsolutePath, dra.plugins_dir);
  section.Text("registry_dir", CheckAbsolutePath, dra.registry_dir);
  if (!dra.enabled) return;
  if (!kubernetes.api_server) section.Problem("enabled needs kubernetes.api_server");
  if (kubernetes.containers.cdi_dir.empty())
    section.Problem("enabled needs kubernetes.cdi_dir: claims reach containers by CDI only");
  if (dra.pools.empty()) section.Problem("enabled needs pools; pools: ['*'] are all");
}

void ReadTop(Section& top, Config& config) {
  top.Text("state_dir", CheckAbsolutePath, config.state_dir);
  top.Text("gateway_socket", CheckAbsolutePath, config.gateway_socket);
  top.Text("fleet_keys_file", CheckOptionalPath, config.fleet_keys_file);
  top.Choice("log_level", process::LogLevels(), config.log_level);
  top.Text("name", CheckName, config.name);
  top.Text("join_file", CheckOptionalPath, config.join_file);
  top.NestedList("attach_rules", [&](Section& rule) { ReadAttachRule(rule, config.attach_rules); });
  top.Nested("kubernetes", [&](Section& section) {
    KubernetesSettings& kubernetes = config.kubernetes;
    section.Bool("enabled", kubernetes.enabled);
    section.Text("device_plugin_dir", CheckPluginFolder, kubernetes.device_plugin_dir);
    section.Text("pod_resources_socket", process::CheckSocketPath, kubernetes.pod_resources_socket);
    section.Text("pod_log_dir", CheckOptionalPath, kubernetes.pod_log_dir);
    section.Text("library_dir", CheckOptionalPath, kubernetes.containers.library_dir);
    section.Text("cdi_dir", CheckOptionalPath, kubernetes.containers.cdi_dir);
    section.Bool("api_server", kubernetes.api_server);
    section.Text("service_account_dir", CheckAbsolutePath, kubernetes.service_account_dir);
    section.Nested("dra", [&](Section& dra) { ReadDra(dra, kubernetes); });
  });
  top.Nested("migration", [&](Section& migration) {
    migration.Text("adapters_dir", CheckOptionalPath, config.adapters_dir);
  });
  top.Text("donors_dir", CheckDonorsFolder, config.donors_dir);
  top.Nested("metrics", [&](Section& metrics) {
    metrics.Text("address", CheckAnything, config.metrics_address);
  });
}

}  // namespace

ConfigResult ParseConfig(const std::string& yaml, const std::string& file) {
  return process::ParseConfigText<Config>(yaml, file, ReadTop);
}

ConfigResult ReadConfig(const std::string& file) {
  return process::ReadConfigFile<Config>(file, ReadTop);
}

std::string_view DefaultConfigText() {
  return R"(# Configuration of rocegw-agent. Every key is optional; shown are the defaults.
# Check a file with: rocegw-agent --check-config --config FILE

# Certificate and key of this host, and the last good configuration of its gateway.
state_dir: /var/lib/rocegw-agent

# Where the gateway of this host listens (grpc_socket of its configuration).
gateway_socket: /run/rocegw/grpc.sock

# File for the keys by which the gateways of the fleet know one another: the agent asks the controller for them and
# replaces the file when they change. The gateway reads it as its gateways.key_file. Empty: keys are not asked for.
fleet_keys_file: ""

# trace, debug, info, warn, error. SIGHUP reads this key again.
log_level: info

# Name of this host's gateway in the fleet, a DNS label, when it joins. Empty: the join file's, else the host name.
name: ""

# A join file that is taken at the start when this host has not joined yet; empty: it joins with rocegw-agent --join
# FILE.
join_file: ""

# Who may attach to pools of this host that ask for it (identity: REQUIRED): processes of one of the users and in or
# below one of the cgroups; what is not named does not matter. A process that no rule of its pool allows is refused.
# Read again on SIGHUP and when this file has changed; who is attached stays. For example
#   - {pool: tenants/red/pools/train, uids: [1000], cgroups: [/system.slice/train.service]}
attach_rules: []

# On a node of a Kubernetes cluster: pools that name pods (attach.service_accounts) are offered to kubelet as
# rocegw.io/<tenant>.<pool>, a device for each slot, and processes of pods may attach by what kubelet says of their slot
# instead of by attach_rules. Nobody of a pod gets in where kubelet does not answer.
kubernetes:
  enabled: false
  # Folder of kubelet's kubelet.sock for plugins.
  device_plugin_dir: /var/lib/kubelet/device-plugins
  # Where kubelet tells which pod holds which device.
  pod_resources_socket: /var/lib/kubelet/pod-resources/kubelet.sock
  # kubelet's folder of pods' logs, whose names have the pods' uids. Empty: a slot's pod is the first one that attaches
  # by it.
  pod_log_dir: /var/log/pods
  # Folder of the host with librocegw-verbs.so, for containers; it is mounted there and preloaded. Empty: containers
  # bring the library along and preload it themselves.
  library_dir: ""
  # Folder where the container runtime looks for descriptions of devices (CDI; containerd from 1.7, CRI-O:
  # /var/run/cdi). Containers then get their slot by it, and LD_PRELOAD over a pod's own. Empty: kubelet gives it to
  # them.
  cdi_dir: ""
  # Ask the cluster's API server which service account a pod has and which labels its namespace has, for pools that name
  # those. The pod of the agent needs a token that may get pods and namespaces. false: such pools admit no pod by them.
  api_server: false
  # Folder with that token and with the authority of the API server, as kubelet mounts it.
  service_account_dir: /var/run/secrets/kubernetes.io/serviceaccount
  # Offer pools to claims of pods (dynamic resource allocation, resource.k8s.io/v1, Kubernetes 1.34 or later). It needs
  # api_server and cdi_dir, and the name of the node in the environment variable ROCEGW_NODE_NAME.
  dra:
    enabled: false
    # Names of pools ('*': all) that are offered to claims, and no more as resources in limits of containers.
    pools: []
    # A pool is one device that claims share, with slots, queue pairs and bandwidth as amounts (DRAConsumableCapacity).
    # A cluster without that gets a device for each slot, as with false.
    shared: true
    # kubelet's folders for plugins and for their registration.
    plugins_dir: /var/lib/kubelet/plugins
    registry_dir: /var/lib/kubelet/plugins_registry

# Migrations of storage systems: folder of the adapters that controllers may run on this host, programs of the user root
# or of the agent's that no other user can change (docs/operate/migration_adapters.md). Empty: none is run.
migration:
  adapters_dir: ""

# Donors of remote memory: folder in which rocegw-memory donate --announce names itself to the fleet, and in which the
# agent answers rocegw-memory mount and swap with --donors fleet (docs/user/remote_memory.md), usually
# /run/rocegw-donors. Who can write there can donate in the name of the host. Empty: the host has no donors, and asks
# for none.
donors_dir: ""

# /metrics for Prometheus, /livez and /readyz. Empty address: off.
metrics:
  address: 127.0.0.1:7473
)";
}

}  // namespace rocegw::agent
