// SPDX-License-Identifier: Apache-2.0
// Stand-in of a gateway that applies each configuration at once and records it. Belongs to its
// agent's loop; any thread may read the records.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "agent/reconcile/gateway_port.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::testing {

class FakeGateway final : public agent::GatewayPort {
 public:
  // `remember`: keeps the objects, and refuses a change that is based on another state than the
  // current one, as a gateway does. Otherwise changes are only counted.
  FakeGateway(ControlLoop& loop, std::string address, bool remember)
      : loop_(loop), address_(std::move(address)), remember_(remember) {}

  void Probe(std::function<void(StatusOr<agent::GatewayProbe>)> done) override;
  void GetConfig(std::function<void(StatusOr<gateway::v1::GetConfigResponse>)> done) override;
  void Apply(const types::v1::Push& push,
             std::function<void(StatusOr<types::v1::PushReport>)> done) override;
  void Ask(const fleet::v1::TunnelQuestion& question,
           std::function<void(fleet::v1::TunnelAnswer)> done) override;
  // No program attaches to this gateway.
  void ListHeldAttaches(
      uint64_t, std::function<void(StatusOr<gateway::v1::ListHeldAttachesResponse>)>) override {}
  void AnswerAttach(uint64_t, bool, const std::string&, const gateway::v1::SlotLimits&) override {}

  // Revision of the current configuration, and number of objects received since the start.
  std::atomic<int64_t> revision{0};
  std::atomic<uint64_t> deliveries{0};
  // Number of pools whose received quota has `wanted_qps` QPs.
  std::atomic<uint64_t> wanted_qps{0};
  std::atomic<uint64_t> pools_with_it{0};

  // Returns names and revisions of the current objects.
  std::map<std::string, int64_t> Objects() const;

 private:
  // Returns false if the push is based on another state.
  bool Take(const types::v1::Push& push);

  ControlLoop& loop_;
  const std::string address_;
  const bool remember_;
  std::string store_;
  mutable std::mutex mutex_;  // guards objects_
  std::map<std::string, int64_t> objects_;
};

}  // namespace rocegw::testing
