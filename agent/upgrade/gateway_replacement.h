// SPDX-License-Identifier: Apache-2.0
// Replacement of the gateway by the installed program, for a controller: asks the gateway how many
// take-overs it has had, orders one more, and reports the gateway that answers afterwards. The
// number makes the question repeatable: after a success, a repetition finds one more take-over and
// reports that. One replacement at a time, each with a time limit. Created, called and destroyed on
// the agent's loop; loop and gateway outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/reconcile/gateway_port.h"
#include "gateway/base/time.h"
#include "gateway/loop/control_loop.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::agent {

class GatewayReplacement {
 public:
  // The answer, complete except for its id.
  using Part = std::function<void(fleet::v1::TunnelAnswer)>;
  // Repetitions of a question that wait for its answer.
  static constexpr size_t kMostWaiting = 16;

  GatewayReplacement(ControlLoop& loop, GatewayPort& gateway) : loop_(loop), gateway_(gateway) {}
  ~GatewayReplacement();
  GatewayReplacement(const GatewayReplacement&) = delete;
  GatewayReplacement& operator=(const GatewayReplacement&) = delete;

  void Start(const fleet::v1::ReplaceGateway& question, Part part);

 private:
  void Look();
  void LookLater();
  void OnLook(const fleet::v1::TunnelAnswer& answer);
  void OnStatus(const types::v1::GatewayStatus& status);
  // Returns true if `last_` describes the take-over that brought the process of this status.
  bool IsReported(const types::v1::GatewayStatus& status) const;
  void Order();
  void OnOrdered(const TakeOverAnswer& answer);
  // Ends without a replacement; `reason`: machine-readable word.
  void Fail(const std::string& reason, const std::string& text);
  void Finish();

  ControlLoop& loop_;
  GatewayPort& gateway_;
  std::vector<Part> waiting_;  // empty: no replacement is in progress
  uint64_t take_overs_ = 0;
  Duration limit_;
  TimePoint deadline_;
  // Start of the process that is replaced, nanoseconds since 1970; 0: not seen yet.
  int64_t started_ns_ = 0;
  bool ordered_ = false;  // the order may have been carried out
  fleet::v1::ReplacementReport report_;
  std::string problem_;  // newest reason for waiting
  // Report of the last success: a controller that did not get it asks again. Used while the process
  // that it describes is the gateway.
  std::optional<fleet::v1::ReplacementReport> last_;
  ControlLoop::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
