// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/controller_link.h"

#include <algorithm>
#include <random>
#include <utility>

#include "agent/sync/stream_call.h"

namespace rocegw::agent {

Duration Backoff::Next(uint64_t random) {
  const Duration pause = pause_;
  pause_ = std::min(pause_ * 8 / 5, kLongest);
  // Returns 50 to 150 percent of the pause.
  return pause / 2 + Nanoseconds(static_cast<int64_t>(random % static_cast<uint64_t>(pause.ns)));
}

// Stub and channel are destroyed with the call.
class ControllerLink::SyncCall final
    : public StreamCall<fleet::v1::SyncRequest, fleet::v1::SyncResponse> {
 public:
  SyncCall(ControlLoop& loop, const std::shared_ptr<grpc::Channel>& channel, Events events)
      : StreamCall(loop, std::move(events)), stub(fleet::v1::NodeService::NewStub(channel)) {}
  const std::unique_ptr<fleet::v1::NodeService::Stub> stub;
};
class ControllerLink::TunnelCall final
    : public StreamCall<fleet::v1::TunnelAnswer, fleet::v1::TunnelQuestion> {
 public:
  TunnelCall(ControlLoop& loop, const std::shared_ptr<grpc::Channel>& channel, Events events)
      : StreamCall(loop, std::move(events)), stub(fleet::v1::NodeService::NewStub(channel)) {}
  const std::unique_ptr<fleet::v1::NodeService::Stub> stub;
};

ControllerLink::ControllerLink(ControlLoop& loop,
                               std::function<std::shared_ptr<grpc::Channel>()> channel,
                               std::string gateway, ControllerEvents events)
    : loop_(loop),
      channel_(std::move(channel)),
      gateway_(std::move(gateway)),
      events_(std::move(events)) {}

void ControllerLink::Start() {
  OpenSync();
  OpenTunnel();
}

ControllerLink::~ControllerLink() {
  loop_.Cancel(sync_timer_);
  loop_.Cancel(tunnel_timer_);
  if (sync_ != nullptr) sync_->Abandon();
  if (tunnel_ != nullptr) tunnel_->Abandon();
}

void ControllerLink::OpenSync() {
  sync_timer_ = 0;
  const auto accepted = [this] { events_.accepted(); };
  const auto read = [this](const fleet::v1::SyncResponse& message) {
    sync_backoff_.Reset();
    if (message.has_push()) events_.push(message.push());
  };
  const auto done = [this](const grpc::Status& status) {
    sync_.reset();
    events_.closed(status);
    sync_timer_ =
        loop_.At(ControlLoop::Now() + sync_backoff_.Next(random_()), [this] { OpenSync(); });
  };
  sync_ = std::make_shared<SyncCall>(loop_, channel_(), SyncCall::Events{accepted, read, done});
  sync_->Begin([this](grpc::ClientContext* context, auto* reactor) {
    sync_->stub->async()->Sync(context, reactor);
  });
  events_.opened();
}

void ControllerLink::OpenTunnel() {
  tunnel_timer_ = 0;
  const auto read = [this](const fleet::v1::TunnelQuestion& question) {
    tunnel_backoff_.Reset();
    events_.question(question);
  };
  const auto done = [this](const grpc::Status&) {
    tunnel_.reset();
    events_.tunnel_closed();
    tunnel_timer_ =
        loop_.At(ControlLoop::Now() + tunnel_backoff_.Next(random_()), [this] { OpenTunnel(); });
  };
  tunnel_ = std::make_shared<TunnelCall>(loop_, channel_(), TunnelCall::Events{{}, read, done});
  tunnel_->Begin([this](grpc::ClientContext* context, auto* reactor) {
    tunnel_->stub->async()->Tunnel(context, reactor);
  });
  fleet::v1::TunnelAnswer first;
  first.set_gateway(gateway_);
  tunnel_->Send(first);
}

void ControllerLink::Send(const fleet::v1::SyncRequest& message) {
  if (sync_ != nullptr) sync_->Send(message);
}

void ControllerLink::Answer(const fleet::v1::TunnelAnswer& answer) {
  if (tunnel_ != nullptr) tunnel_->Send(answer);
}

}  // namespace rocegw::agent
