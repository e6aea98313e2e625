// SPDX-License-Identifier: Apache-2.0
// The gateway as its agent sees it. gateway_client.h speaks to a real one; load tests put something
// else in its place. Called on the agent's loop; calls back there.
#pragma once

#include <functional>
#include <string>

#include "gateway/base/status.h"
#include "rocegw/fleet/v1/node.pb.h"
#include "rocegw/gateway/v1/config.pb.h"
#include "rocegw/gateway/v1/identity.pb.h"

namespace rocegw::agent {

struct GatewayProbe {
  // Another value than before: it was started anew.
  int64_t started_ns = 0;
  fleet::v1::Heartbeat status;
};

class GatewayPort {
 public:
  virtual ~GatewayPort() = default;
  // Each calls back once, later; not any more when the port goes. The error's text is for people.
  virtual void Probe(std::function<void(StatusOr<GatewayProbe>)> done) = 0;
  virtual void GetConfig(std::function<void(StatusOr<gateway::v1::GetConfigResponse>)> done) = 0;
  virtual void Apply(const types::v1::Push& push,
                     std::function<void(StatusOr<types::v1::PushReport>)> done) = 0;
  // A question of the controller; the answer is complete but for its id. One in parts calls back
  // with each of them, as far as they were granted, the last one without `more`.
  virtual void Ask(const fleet::v1::TunnelQuestion& question,
                   std::function<void(fleet::v1::TunnelAnswer)> done) = 0;
  // So many more parts of the answer are wanted.
  virtual void Grant(uint64_t /*question*/, uint32_t /*parts*/) {}
  // Nobody waits any more for the parts of this answer, or of any: they call back no more.
  virtual void Cancel(uint64_t /*question*/) {}
  virtual void CancelAll() {}
  // Attaches that wait for a verdict, as soon as there is one with an id above `after`; now and
  // then without any.
  virtual void ListHeldAttaches(
      uint64_t after,
      std::function<void(StatusOr<gateway::v1::ListHeldAttachesResponse>)> done) = 0;
  // Nobody is told whether it came in time.
  virtual void AnswerAttach(uint64_t id, bool allowed, const std::string& reason) = 0;
  // Ends the sessions of an attach socket; yields how many are still ending. expect_program: a
  // container that has it is about to start. Only who offers slots asks for it.
  virtual void ClearSocket(const std::string& /*socket*/, bool /*expect_program*/,
                           std::function<void(StatusOr<uint32_t>)> /*done*/) {}
};

}  // namespace rocegw::agent
