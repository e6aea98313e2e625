// SPDX-License-Identifier: Apache-2.0
// Gateway with pools, as far as an agent on a node of a cluster uses it. Answers on the loop. The
// test sets its fields on the loop's thread.
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/reconcile/gateway_port.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::testing {

// Pool of the tests.
inline constexpr char kPool[] = "tenants/red/pools/train";
inline constexpr char kResource[] = "rocegw.io/red.train";
inline constexpr char kUid[] = "0a1b2c3d-0001-4000-8000-00000000000a";

class PoolsGateway final : public agent::GatewayPort {
 public:
  explicit PoolsGateway(ControlLoop& loop) : loop_(loop) {
    status.mutable_start_time()->set_seconds(1);
    status.set_ready(true);
    status.set_config_source("store");
    status.set_applied_revision(1);
  }

  static std::string Socket(const std::string& folder, int slot) {
    return "/run/rocegw/a/" + folder + "/" + std::to_string(slot) + "/attach.sock";
  }
  void AddPool(const std::string& name, const std::string& folder, int slots,
               const std::vector<std::string>& namespaces) {
    types::v1::PoolConfig& pool = *config.add_objects()->mutable_pool();
    pool.set_name(name);
    config.mutable_objects(config.objects_size() - 1)->set_name(name);
    types::v1::AttachRules& attach = *pool.mutable_spec()->mutable_attach();
    attach.set_identity(types::v1::REQUIRED);
    for (const std::string& one : namespaces) attach.add_service_accounts()->set_namespace_(one);
    types::v1::PoolUsage& usage = usages.emplace_back();
    usage.set_pool(name);
    for (int slot = 0; slot < slots; ++slot) usage.add_sockets(Socket(folder, slot));
    status.set_applied_revision(status.applied_revision() + 1);
  }
  void RemovePools() {
    config.clear_objects();
    usages.clear();
    status.set_applied_revision(status.applied_revision() + 1);
  }

  void Probe(std::function<void(StatusOr<agent::GatewayProbe>)>) override {}
  void GetConfig(std::function<void(StatusOr<gateway::v1::GetConfigResponse>)> done) override {
    ++configs_read;
    Later([this, done = std::move(done)] { done(config); });
  }
  void Apply(const types::v1::Push&,
             std::function<void(StatusOr<types::v1::PushReport>)>) override {}
  // Returns one pool per page.
  void Ask(const fleet::v1::TunnelQuestion& question,
           std::function<void(fleet::v1::TunnelAnswer)> done) override {
    fleet::v1::TunnelAnswer answer;
    if (away) {
      answer.set_code(14);
    } else if (question.has_get_status()) {
      *answer.mutable_status() = status;
    } else if (question.has_list_pools()) {
      const std::string& page = question.list_pools().page_token();
      const size_t at = page.empty() ? 0 : std::stoul(page);
      auto& pools = *answer.mutable_pools();
      if (at < usages.size()) *pools.add_pools() = usages[at];
      if (at + 1 < usages.size()) pools.set_next_page_token(std::to_string(at + 1));
    }
    Later([done = std::move(done), answer] { done(answer); });
  }
  void ListHeldAttaches(
      uint64_t, std::function<void(StatusOr<gateway::v1::ListHeldAttachesResponse>)>) override {}
  void AnswerAttach(uint64_t, bool, const std::string&, const gateway::v1::SlotLimits&) override {}
  void ClearSocket(const std::string& socket, bool expect_program,
                   std::function<void(StatusOr<uint32_t>)> done) override {
    if (!away) cleared.push_back(socket);
    if (!away && expect_program) expected.push_back(socket);
    uint32_t& left = sessions[socket];
    const StatusOr<uint32_t> answer = away ? StatusOr<uint32_t>(Status(EIO, "away")) : left;
    if (!away && left > 0) --left;
    Later([done = std::move(done), answer] { done(answer); });
  }

  types::v1::GatewayStatus status;
  gateway::v1::GetConfigResponse config;
  std::vector<types::v1::PoolUsage> usages;
  bool away = false;
  std::map<std::string, uint32_t> sessions;  // by socket: decreases with each query
  std::vector<std::string> cleared;
  std::vector<std::string> expected;  // sockets with an expected program
  int configs_read = 0;

 private:
  void Later(std::function<void()> task) { (void)loop_.Post(std::move(task)); }

  ControlLoop& loop_;
};

}  // namespace rocegw::testing
