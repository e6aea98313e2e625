// SPDX-License-Identifier: Apache-2.0
// A gateway that takes every configuration at once and notes what it got. Lives on its agent's
// loop; what it notes may be read by any thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "agent/reconcile/gateway_port.h"
#include "gateway/session/control_loop.h"

namespace rocegw::testing {

class FakeGateway final : public agent::GatewayPort {
 public:
  // remember: it keeps the objects and refuses a change that builds on another state than it runs,
  // as a real one does. Otherwise it only counts.
  FakeGateway(session::ControlLoop& loop, std::string address, bool remember)
      : loop_(loop), address_(std::move(address)), remember_(remember) {}

  void Probe(std::function<void(StatusOr<agent::GatewayProbe>)> done) override;
  void GetConfig(std::function<void(StatusOr<gateway::v1::GetConfigResponse>)> done) override;
  void Apply(const types::v1::Push& push,
             std::function<void(StatusOr<types::v1::PushReport>)> done) override;
  void Ask(const fleet::v1::TunnelQuestion& question,
           std::function<void(fleet::v1::TunnelAnswer)> done) override;
  // Nobody attaches here.
  void ListHeldAttaches(
      uint64_t, std::function<void(StatusOr<gateway::v1::ListHeldAttachesResponse>)>) override {}
  void AnswerAttach(uint64_t, bool, const std::string&) override {}

  // Revision of what it runs, and objects that it has been handed since the start.
  std::atomic<int64_t> revision{0};
  std::atomic<uint64_t> deliveries{0};
  // Pools whose quota has been delivered with the newest number of QPs that was asked for.
  std::atomic<uint64_t> wanted_qps{0};
  std::atomic<uint64_t> pools_with_it{0};

  // Names and revisions of what it runs.
  std::map<std::string, int64_t> Objects() const;

 private:
  // False: it builds on something else.
  bool Take(const types::v1::Push& push);

  session::ControlLoop& loop_;
  const std::string address_;
  const bool remember_;
  std::string store_;
  mutable std::mutex mutex_;  // guards the next one
  std::map<std::string, int64_t> objects_;
};

}  // namespace rocegw::testing
