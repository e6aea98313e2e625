// SPDX-License-Identifier: Apache-2.0
// Interface of the agent to its gateway. gateway_client.h implements it for a real gateway, load
// tests by a simulated one. Called on the agent's loop; calls back there.
#pragma once

#include <functional>
#include <string>

#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "rocegw/fleet/v1/node.pb.h"
#include "rocegw/gateway/v1/config.pb.h"
#include "rocegw/gateway/v1/identity.pb.h"
#include "rocegw/gateway/v1/take_over.pb.h"

namespace rocegw::agent {

struct GatewayProbe {
  // Start time; a new value means that the gateway was restarted.
  int64_t started_ns = 0;
  fleet::v1::Heartbeat status;
};

// Answer to an ordered take-over, or the gRPC code that says why there is none.
struct TakeOverAnswer {
  int code = 0;
  std::string message;
  gateway::v1::TakeOverResponse response;
};

class GatewayPort {
 public:
  virtual ~GatewayPort() = default;
  // Each function calls back once, later, and not after this object is destroyed. An error's text
  // is for display.
  virtual void Probe(std::function<void(StatusOr<GatewayProbe>)> done) = 0;
  virtual void GetConfig(std::function<void(StatusOr<gateway::v1::GetConfigResponse>)> done) = 0;
  virtual void Apply(const types::v1::Push& push,
                     std::function<void(StatusOr<types::v1::PushReport>)> done) = 0;
  // Forwards a question of the controller; the answer is complete except for its id. An answer in
  // parts calls back for each granted part; the last one is without `more`.
  virtual void Ask(const fleet::v1::TunnelQuestion& question,
                   std::function<void(fleet::v1::TunnelAnswer)> done) = 0;
  // Grants so many more parts of the answer.
  virtual void Grant(uint64_t /*question*/, uint32_t /*parts*/) {}
  // Cancels one answer, or all: no more callbacks.
  virtual void Cancel(uint64_t /*question*/) {}
  virtual void CancelAll() {}
  // Has the gateway replaced by the installed program, if it has had `take_overs` take-overs.
  virtual void TakeOver(uint64_t /*take_overs*/, Duration /*limit*/,
                        std::function<void(const TakeOverAnswer&)> /*done*/) {}
  // Lists attaches that wait for a verdict, as soon as there is one with an id above `after`; from
  // time to time an empty list.
  virtual void ListHeldAttaches(
      uint64_t after,
      std::function<void(StatusOr<gateway::v1::ListHeldAttachesResponse>)> done) = 0;
  // Sends a verdict; it is not reported if it came in time.
  virtual void AnswerAttach(uint64_t id, bool allowed, const std::string& reason,
                            const gateway::v1::SlotLimits& limits) = 0;
  // Ends the sessions of an attach socket and returns how many are still ending. `expect_program`:
  // a container with that socket is about to start. Only used with offered slots.
  virtual void ClearSocket(const std::string& /*socket*/, bool /*expect_program*/,
                           std::function<void(StatusOr<uint32_t>)> /*done*/) {}
};

}  // namespace rocegw::agent
