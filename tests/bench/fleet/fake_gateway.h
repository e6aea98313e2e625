// SPDX-License-Identifier: Apache-2.0
// A gateway that takes every configuration at once and notes what it got. Lives on its agent's
// loop; the notes may be read by any thread.
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <string>

#include "agent/reconcile/gateway_port.h"
#include "gateway/session/control_loop.h"

namespace rocegw::bench {

class FakeGateway final : public agent::GatewayPort {
 public:
  FakeGateway(session::ControlLoop& loop, std::string address)
      : loop_(loop), address_(std::move(address)) {}

  void Probe(std::function<void(StatusOr<agent::GatewayProbe>)> done) override;
  void GetConfig(std::function<void(StatusOr<gateway::v1::GetConfigResponse>)> done) override;
  void Apply(const types::v1::Push& push,
             std::function<void(StatusOr<types::v1::PushReport>)> done) override;
  void Ask(const fleet::v1::TunnelQuestion& question,
           std::function<void(fleet::v1::TunnelAnswer)> done) override;

  // Revision of what it runs, and objects that it has been handed since the start.
  std::atomic<int64_t> revision{0};
  std::atomic<uint64_t> deliveries{0};
  // Pools whose quota has been delivered with the newest number of QPs that was asked for.
  std::atomic<uint64_t> wanted_qps{0};
  std::atomic<uint64_t> pools_with_it{0};

 private:
  session::ControlLoop& loop_;
  const std::string address_;
  std::string store_;
};

}  // namespace rocegw::bench
