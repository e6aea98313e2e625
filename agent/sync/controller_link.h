// SPDX-License-Identifier: Apache-2.0
// The agent's two streams to a controller, restarted after a growing pause whenever they end.
// Created, called and destroyed on the agent's loop; calls back there. The loop outlives it.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <random>
#include <string>

#include "gateway/base/time.h"
#include "gateway/loop/control_loop.h"
#include "rocegw/fleet/v1/node.grpc.pb.h"

namespace rocegw::agent {

struct ControllerEvents {
  // The stream has begun: a hello must be sent.
  std::function<void()> opened;
  // The controller has accepted the stream. Older controllers show it only by their first push.
  std::function<void()> accepted;
  std::function<void(const types::v1::Push&)> push;
  std::function<void(const grpc::Status&)> closed;
  std::function<void(const fleet::v1::TunnelQuestion&)> question;
  // Answers to earlier questions are obsolete.
  std::function<void()> tunnel_closed;
};

// Pauses between attempts: growing, and different for each agent, so that a restarted controller is
// not overloaded by all agents at once.
class Backoff {
 public:
  static constexpr Duration kFirst = Milliseconds(100);
  static constexpr Duration kLongest = Seconds(5);
  // `random`: a new random number for each call.
  Duration Next(uint64_t random);
  void Reset() { pause_ = kFirst; }

 private:
  Duration pause_ = kFirst;
};

class ControllerLink {
 public:
  // `gateway`: "gateways/G". `channel`: called for each attempt.
  ControllerLink(ControlLoop& loop, std::function<std::shared_ptr<grpc::Channel>()> channel,
                 std::string gateway, ControllerEvents events);
  ~ControllerLink();
  ControllerLink(const ControllerLink&) = delete;
  ControllerLink& operator=(const ControllerLink&) = delete;

  void Start();
  // Sends a message between `opened` and `closed`; otherwise drops it.
  void Send(const fleet::v1::SyncRequest& message);
  void Answer(const fleet::v1::TunnelAnswer& answer);

 private:
  class SyncCall;
  class TunnelCall;
  void OpenSync();
  void OpenTunnel();

  ControlLoop& loop_;
  const std::function<std::shared_ptr<grpc::Channel>()> channel_;
  const std::string gateway_;
  const ControllerEvents events_;
  std::minstd_rand random_{std::random_device{}()};
  Backoff sync_backoff_;
  Backoff tunnel_backoff_;
  ControlLoop::TimerId sync_timer_ = 0;
  ControlLoop::TimerId tunnel_timer_ = 0;
  std::shared_ptr<SyncCall> sync_;
  std::shared_ptr<TunnelCall> tunnel_;
};

}  // namespace rocegw::agent
