// SPDX-License-Identifier: Apache-2.0
// The agent of a Kubernetes node: offers the gateway's pools to kubelet, and decides about attaches
// of pods. Its parts together, with their timers and what they need to know of the gateway. Lives
// on the agent's loop; what it is given outlives it.
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
#include "gateway/session/control_loop.h"

namespace rocegw::agent {

struct KubernetesSettings {
  bool enabled = false;
  std::string device_plugin_dir = "/var/lib/kubelet/device-plugins";
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string pod_log_dir = "/var/log/pods";  // empty: not looked at
  std::string own_pod_uid;                    // of the pod that the agent runs in; empty: in none
  ContainerSettings containers;
  bool api_server = false;  // the cluster's is asked about pods
  DraSettings dra;          // needs an API server and containers.cdi_dir
  // Folder of the pod's service account, for the API server: ca.crt, token.
  std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
  bool operator==(const KubernetesSettings&) const = default;
};

struct KubernetesPace {
  Duration look = Seconds(1);      // at kubelet's folder and the gateway's state
  Duration refresh = Seconds(30);  // of what the gateway offers, though it says nothing new
  Duration poll = Seconds(10);     // of who holds what
  // A gateway may be away for so long before its slots count as unhealthy: a pod that comes
  // meanwhile would fail for good.
  Duration patience = Seconds(10);
  PublisherPace publisher;
};

class Kubernetes {
 public:
  // others: decides about processes that are in no pod. api: nullptr: the API server is not asked.
  // sysfs: where NUMA nodes are looked up.
  Kubernetes(session::ControlLoop& loop, GatewayPort& gateway, VerdictSource& others,
             kubeapi::ApiServer* api, const KubernetesSettings& settings, KubernetesPace pace = {},
             std::string sysfs = "/sys");
  ~Kubernetes();
  Kubernetes(const Kubernetes&) = delete;
  Kubernetes& operator=(const Kubernetes&) = delete;

  VerdictSource& verdicts() { return verdicts_; }
  const DevicePluginCounters& counters() const { return plugin_.counters(); }

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

  session::ControlLoop& loop_;
  GatewayPort& gateway_;
  const KubernetesPace pace_;
  const std::string sysfs_;
  PodResources kubelet_;
  PodIdentities identities_;
  SlotKeeper slots_;
  const std::vector<std::string> by_claim_;  // pools
  DevicePlugin plugin_;
  std::optional<DraDriver> dra_;
  // What the gateway offers has been read, or it is away for too long: until then an agent that
  // starts anew leaves the devices that the one before has published.
  bool offer_known_ = false;
  PodVerdicts verdicts_;
  std::string offered_;  // tells the state of the gateway that the offer was read from
  TimePoint refresh_at_;
  TimePoint answered_at_;
  session::ControlLoop::TimerId look_timer_ = 0;
  session::ControlLoop::TimerId poll_timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Of the interfaces that the gateway's ports use; -1: not known, or they differ.
int NumaNodeOf(const types::v1::GatewayStatus& status, const std::string& sysfs);

}  // namespace rocegw::agent
