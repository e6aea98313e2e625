// SPDX-License-Identifier: Apache-2.0
// Agent of a Kubernetes node: offers the gateway's pools to kubelet, and decides about attaches of
// pods. Combines its parts, their timers and the gateway's state. Lives on the agent's loop; its
// arguments outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/expose/attach_rules.h"
#include "agent/kube/device_plugin.h"
#include "agent/kube/dra/dra_driver.h"
#include "agent/kube/pods/pod_identities.h"
#include "agent/kube/pods/pod_resources.h"
#include "agent/kube/pods/pod_verdicts.h"
#include "agent/kube/slot_keeper.h"
#include "agent/reconcile/gateway_port.h"
#include "controlplane/kubeapi/api_server.h"
#include "gateway/base/time.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

struct KubernetesSettings {
  bool enabled = false;
  std::string device_plugin_dir = "/var/lib/kubelet/device-plugins";
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string pod_log_dir = "/var/log/pods";  // empty: not used
  std::string own_pod_uid;                    // pod in which the agent runs; empty: none
  ContainerSettings containers;
  bool api_server = false;  // the cluster's API server is asked about pods
  DraSettings dra;          // requires an API server and containers.cdi_dir
  // Directory of the pod's service account, for the API server: ca.crt, token.
  std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
  bool operator==(const KubernetesSettings&) const = default;
};

struct KubernetesPace {
  Duration look = Seconds(1);  // interval of checks of kubelet's directory and the gateway's state
  Duration refresh = Seconds(30);  // interval of reading the gateway's offer even without a change
  Duration poll = Seconds(10);     // interval of reading the assignments
  // Time for which the gateway may be away before its slots count as unhealthy: a pod that starts
  // in that state would fail for good.
  Duration patience = Seconds(10);
  PublisherPace publisher;
  Duration claim_review = Seconds(600);  // interval of comparing claims with the API server
};

class Kubernetes {
 public:
  // `others`: decides about processes outside of pods. `api`: nullptr: the API server is not asked.
  // `sysfs`: for NUMA nodes.
  Kubernetes(ControlLoop& loop, GatewayPort& gateway, VerdictSource& others,
             kubeapi::ApiServer* api, const KubernetesSettings& settings, KubernetesPace pace = {},
             std::string sysfs = "/sys");
  ~Kubernetes();
  Kubernetes(const Kubernetes&) = delete;
  Kubernetes& operator=(const Kubernetes&) = delete;

  VerdictSource& verdicts() { return verdicts_; }
  const DevicePluginCounters& counters() const { return plugin_.counters(); }
  // Returns nullptr without the driver for claims.
  const ClaimCounters* claim_counters() const { return dra_ ? &dra_->counters() : nullptr; }

 private:
  void OnSlots();
  void Look();
  void OnStatus(const fleet::v1::TunnelAnswer& answer);
  void ReadOffer(const types::v1::GatewayStatus& status);
  void ListPools(std::shared_ptr<gateway::v1::GetConfigResponse> config,
                 std::shared_ptr<std::vector<types::v1::PoolUsage>> pools, const std::string& page,
                 int numa_node);
  void Poll();
  void Ask(fleet::v1::TunnelQuestion question, std::function<void(fleet::v1::TunnelAnswer)> done);

  ControlLoop& loop_;
  GatewayPort& gateway_;
  const KubernetesPace pace_;
  const std::string sysfs_;
  PodResources kubelet_;
  PodIdentities identities_;
  SlotKeeper slots_;
  const std::vector<std::string> by_claim_;  // names of pools
  DevicePlugin plugin_;
  std::optional<DraDriver> dra_;
  // The gateway's offer has been read, or the gateway is away for too long. Before that a restarted
  // agent keeps the devices that the previous one published.
  bool offer_known_ = false;
  PodVerdicts verdicts_;
  std::string offered_;  // state of the gateway at which the offer was read
  TimePoint refresh_at_;
  TimePoint answered_at_;
  ControlLoop::TimerId look_timer_ = 0;
  ControlLoop::TimerId poll_timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Returns the NUMA node of the gateway's interfaces; -1: unknown, or different nodes.
int NumaNodeOf(const types::v1::GatewayStatus& status, const std::string& sysfs);

}  // namespace rocegw::agent
