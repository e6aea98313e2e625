// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/replicas.h"

#include <utility>
#include <vector>

#include "rocegw/fleet/v1/replica.grpc.pb.h"

namespace rocegw::api {

// One question to all others. Holds itself until the last has answered.
template <typename Request, typename Response>
class Replicas::Round : public std::enable_shared_from_this<Round<Request, Response>> {
 public:
  using Take = std::function<void(const Response&)>;
  using Done = std::function<void(uint32_t silent)>;

  // Take and done are called one at a time.
  Round(Replicas& replicas, Request request, Deadline deadline, Take take, Done done)
      : replicas_(replicas),
        request_(std::move(request)),
        deadline_(deadline),
        take_(std::move(take)),
        done_(std::move(done)) {}

  // start(async stub, context, request, response, callback).
  template <typename Start>
  void Ask(const std::vector<Replica>& others, const Start& start) {
    open_ = others.size() + 1;
    for (const Replica& other : others) {
      const auto call = std::make_shared<Call>();
      call->context.set_deadline(deadline_);
      if (!replicas_.Begin(call->context)) {
        Answered(nullptr);
        continue;
      }
      call->stub = fleet::v1::ReplicaService::NewStub(replicas_.Connection(other));
      start(*call->stub->async(), &call->context, &request_, &call->response,
            [self = this->shared_from_this(), call](const grpc::Status& status) {
              self->Answered(status.ok() ? &call->response : nullptr);
              self->replicas_.Ended(call->context);
            });
    }
    End();
  }

 private:
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<fleet::v1::ReplicaService::Stub> stub;
    Response response;
  };

  void Answered(const Response* response) {
    {
      const std::lock_guard lock(mutex_);
      if (response != nullptr) {
        take_(*response);
      } else {
        ++silent_;
      }
    }
    End();
  }
  void End() {
    {
      const std::lock_guard lock(mutex_);
      if (--open_ != 0) return;
    }
    done_(silent_);
  }

  Replicas& replicas_;
  const Request request_;
  const Deadline deadline_;
  const Take take_;
  const Done done_;
  std::mutex mutex_;
  size_t open_ = 0;  // and one while asking
  uint32_t silent_ = 0;
};

Replicas::Replicas(const sync::FleetFollower& follower, std::string self, ChannelTo channel_to)
    : follower_(follower), self_(std::move(self)), channel_to_(std::move(channel_to)) {}

Replicas::~Replicas() {
  Close();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return calls_.empty(); });
}

void Replicas::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (grpc::ClientContext* const call : calls_) call->TryCancel();
}

Replicas::Replica Replicas::OwnerOf(const std::string& gateway) const {
  if (!channel_to_) return {};
  return follower_.Read([&](const sync::Fleet& fleet) -> Replica {
    const auto known = fleet.view.gateways.find(gateway);
    if (known == fleet.view.gateways.end()) return {};
    const types::v1::GatewayState& state = known->second.object.status();
    const auto replica = fleet.replicas.find(state.controller());
    if (!state.connected() || state.controller() == self_ || replica == fleet.replicas.end())
      return {};
    return {state.controller(), replica->second.address()};
  });
}

std::vector<Replicas::Replica> Replicas::Others() const {
  if (!channel_to_) return {};
  return follower_.Read([&](const sync::Fleet& fleet) {
    std::vector<Replica> others;
    for (const auto& [id, record] : fleet.replicas) {
      if (id != self_) others.push_back({id, record.address()});
    }
    return others;
  });
}

std::shared_ptr<grpc::Channel> Replicas::Connection(const Replica& replica) {
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_[replica.id];
  if (peer.channel == nullptr || peer.address != replica.address) {
    peer = {replica.address, channel_to_(replica.address)};
  }
  return peer.channel;
}

bool Replicas::Begin(grpc::ClientContext& context) {
  const std::lock_guard lock(mutex_);
  return !closed_ && calls_.insert(&context).second;
}

void Replicas::Ended(grpc::ClientContext& context) {
  const std::lock_guard lock(mutex_);
  calls_.erase(&context);
  ended_.notify_all();
}

void Replicas::AddProgress(
    store::Revision revision, Deadline deadline,
    std::function<void(const sync::FleetProgress& others, uint32_t silent)> done) {
  using Asked = fleet::v1::ReplicaProgressRequest;
  using Answer = fleet::v1::ReplicaProgress;
  Asked request;
  request.set_revision(revision);
  const auto sum = std::make_shared<sync::FleetProgress>();
  const auto round = std::make_shared<Round<Asked, Answer>>(
      *this, std::move(request), deadline,
      [sum](const Answer& answer) {
        sum->connected += answer.connected();
        sum->in_sync += answer.in_sync();
        sum->unadopted += answer.unadopted();
        sum->rejecting += answer.rejecting();
      },
      [sum, done = std::move(done)](uint32_t silent) { done(*sum, silent); });
  round->Ask(Others(), [](auto& stub, auto... call) { stub.GetProgress(std::move(call)...); });
}

void Replicas::Adopt(const std::string& gateway, Deadline deadline,
                     std::function<void(uint32_t adopted, uint32_t silent)> done) {
  using Asked = fleet::v1::ReplicaAdoptRequest;
  using Answer = fleet::v1::ReplicaAdopted;
  Asked request;
  request.set_gateway(gateway);
  const auto sum = std::make_shared<uint32_t>(0);
  const auto round = std::make_shared<Round<Asked, Answer>>(
      *this, std::move(request), deadline,
      [sum](const Answer& answer) { *sum += answer.gateways(); },
      [sum, done = std::move(done)](uint32_t silent) { done(*sum, silent); });
  round->Ask(Others(), [](auto& stub, auto... call) { stub.Adopt(std::move(call)...); });
}

}  // namespace rocegw::api
