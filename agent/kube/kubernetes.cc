// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/kubernetes.h"

#include <google/protobuf/util/time_util.h>

#include <chrono>
#include <fstream>
#include <utility>

#include "agent/kube/pool_offer.h"

namespace rocegw::agent {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int kPage = 1000;
constexpr std::chrono::seconds kQuestionDeadline(5);

}  // namespace

int NumaNodeOf(const types::v1::GatewayStatus& status, const std::string& sysfs) {
  int common = -1;
  for (const types::v1::Port& port : status.ports()) {
    std::ifstream file(sysfs + "/class/net/" + port.interface() + "/device/numa_node");
    int node = -1;
    if (!(file >> node) || node < 0) return -1;
    if (common >= 0 && node != common) return -1;
    common = node;
  }
  return common;
}

Kubernetes::Kubernetes(ControlLoop& loop, GatewayPort& gateway, VerdictSource& others,
                       kubeapi::ApiServer* api, const KubernetesSettings& settings,
                       KubernetesPace pace, std::string sysfs)
    : loop_(loop),
      gateway_(gateway),
      pace_(pace),
      sysfs_(std::move(sysfs)),
      kubelet_(loop, settings.pod_resources_socket,
               {settings.device_plugin_dir + "/kubelet_internal_checkpoint", settings.pod_log_dir}),
      identities_(loop, api),
      slots_(loop, gateway, settings.pod_log_dir, [this] { OnSlots(); }),
      by_claim_(settings.dra.enabled ? settings.dra.pools : std::vector<std::string>()),
      plugin_(loop, slots_, settings.device_plugin_dir, settings.containers),
      verdicts_(others, slots_, kubelet_, identities_, settings.own_pod_uid),
      answered_at_(ControlLoop::Now()) {
  slots_.OnAssigned([this] { kubelet_.Forget(); });
  if (settings.dra.enabled && api != nullptr)
    dra_.emplace(loop, slots_, *api, settings.dra, settings.containers, pace.publisher,
                 pace.claim_review);
  Look();
  Poll();
}

Kubernetes::~Kubernetes() {
  *alive_ = false;
  loop_.Cancel(look_timer_);
  loop_.Cancel(poll_timer_);
}

void Kubernetes::OnSlots() {
  plugin_.Update();
  if (dra_ && offer_known_) dra_->Update();
}

void Kubernetes::Ask(fleet::v1::TunnelQuestion question,
                     std::function<void(fleet::v1::TunnelAnswer)> done) {
  const auto deadline = std::chrono::system_clock::now() + kQuestionDeadline;
  *question.mutable_deadline() = TimeUtil::NanosecondsToTimestamp(
      std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch()).count());
  gateway_.Ask(question, [done = std::move(done), alive = alive_](fleet::v1::TunnelAnswer answer) {
    if (*alive) done(std::move(answer));
  });
}

void Kubernetes::Look() {
  look_timer_ = 0;
  fleet::v1::TunnelQuestion question;
  question.mutable_get_status();
  Ask(std::move(question), [this](const fleet::v1::TunnelAnswer& answer) {
    look_timer_ = loop_.At(ControlLoop::Now() + pace_.look, [this] { Look(); });
    OnStatus(answer);
    plugin_.Look();
    if (dra_) dra_->Look();
  });
}

void Kubernetes::OnStatus(const fleet::v1::TunnelAnswer& answer) {
  const TimePoint now = ControlLoop::Now();
  const bool ready = answer.code() == 0 && answer.status().ready();
  if (!ready) {
    // The gateway may offer something else when it comes back.
    offered_.clear();
    if (now - answered_at_ < pace_.patience) return;
    offer_known_ = true;
    slots_.SetGatewayHealthy(false);
    if (dra_) dra_->Update();
    return;
  }
  answered_at_ = now;
  const types::v1::GatewayStatus& status = answer.status();
  slots_.SetGatewayHealthy(status.admin_state() != types::v1::DRAINING);
  const std::string state = std::to_string(TimeUtil::TimestampToNanoseconds(status.start_time())) +
                            " " + status.config_source() + " " +
                            std::to_string(status.applied_revision());
  if (state == offered_ && now < refresh_at_) return;
  offered_ = state;
  refresh_at_ = now + pace_.refresh;
  ReadOffer(status);
}

void Kubernetes::ReadOffer(const types::v1::GatewayStatus& status) {
  const int numa_node = NumaNodeOf(status, sysfs_);
  gateway_.GetConfig(
      [this, numa_node, alive = alive_](const StatusOr<gateway::v1::GetConfigResponse>& config) {
        if (!*alive) return;
        if (!config.ok()) return offered_.clear();
        ListPools(std::make_shared<gateway::v1::GetConfigResponse>(config.value()),
                  std::make_shared<std::vector<types::v1::PoolUsage>>(), "", numa_node);
      });
}

void Kubernetes::ListPools(std::shared_ptr<gateway::v1::GetConfigResponse> config,
                           std::shared_ptr<std::vector<types::v1::PoolUsage>> pools,
                           const std::string& page, int numa_node) {
  fleet::v1::TunnelQuestion question;
  question.mutable_list_pools()->set_page_size(kPage);
  question.mutable_list_pools()->set_page_token(page);
  Ask(std::move(question), [this, config = std::move(config), pools = std::move(pools),
                            numa_node](const fleet::v1::TunnelAnswer& answer) {
    if (answer.code() != 0) return offered_.clear();
    pools->insert(pools->end(), answer.pools().pools().begin(), answer.pools().pools().end());
    const std::string& next = answer.pools().next_page_token();
    if (!next.empty()) return ListPools(config, pools, next, numa_node);
    offer_known_ = true;
    slots_.SetOffers(OfferOf(*config, *pools, by_claim_), numa_node);
    if (dra_) dra_->Update();
  });
}

void Kubernetes::Poll() {
  poll_timer_ = loop_.At(ControlLoop::Now() + pace_.poll, [this] { Poll(); });
  kubelet_.List([this](const StatusOr<Assignments>& assignments, bool) {
    // Without an answer of kubelet the assignments stay as they are.
    if (assignments.ok()) slots_.TakeAssignments(assignments.value());
  });
}

}  // namespace rocegw::agent
