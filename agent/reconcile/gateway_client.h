// SPDX-License-Identifier: Apache-2.0
// Client of a gateway daemon at its unix socket. Created and destroyed on the agent's loop, which
// outlives it.
#pragma once

#include <grpcpp/channel.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/reconcile/gateway_port.h"
#include "gateway/loop/control_loop.h"
#include "rocegw/gateway/v1/config.grpc.pb.h"
#include "rocegw/gateway/v1/debug.grpc.pb.h"
#include "rocegw/gateway/v1/identity.grpc.pb.h"
#include "rocegw/gateway/v1/state.grpc.pb.h"
#include "rocegw/gateway/v1/take_over.grpc.pb.h"

namespace rocegw::agent {

class GatewayClient final : public GatewayPort {
 public:
  // `socket`: path of the gateway's gRPC socket.
  GatewayClient(ControlLoop& loop, const std::string& socket);
  ~GatewayClient() override;

  void Probe(std::function<void(StatusOr<GatewayProbe>)> done) override;
  void GetConfig(std::function<void(StatusOr<gateway::v1::GetConfigResponse>)> done) override;
  void Apply(const types::v1::Push& push,
             std::function<void(StatusOr<types::v1::PushReport>)> done) override;
  void Ask(const fleet::v1::TunnelQuestion& question,
           std::function<void(fleet::v1::TunnelAnswer)> done) override;
  void TakeOver(uint64_t take_overs, Duration limit,
                std::function<void(const TakeOverAnswer&)> done) override;
  void ListHeldAttaches(
      uint64_t after,
      std::function<void(StatusOr<gateway::v1::ListHeldAttachesResponse>)> done) override;
  void AnswerAttach(uint64_t id, bool allowed, const std::string& reason,
                    const gateway::v1::SlotLimits& limits) override;
  void ClearSocket(const std::string& socket, bool expect_program,
                   std::function<void(StatusOr<uint32_t>)> done) override;
  void Grant(uint64_t question, uint32_t parts) override;
  void Cancel(uint64_t question) override;
  void CancelAll() override;

 private:
  struct HeldCall;
  struct Stubs;
  class Capture;
  void ApplyPart(const std::shared_ptr<std::vector<types::v1::Push>>& parts, size_t at,
                 std::function<void(StatusOr<types::v1::PushReport>)> done);
  ControlLoop& loop_;
  // Held by pending calls until they end; results after the destruction are dropped.
  std::shared_ptr<Stubs> stubs_;
  std::map<uint64_t, std::shared_ptr<Capture>> captures_;  // running captures, by question
};

}  // namespace rocegw::agent
