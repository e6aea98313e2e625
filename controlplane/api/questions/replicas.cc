// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/questions/replicas.h"

#include <algorithm>
#include <utility>

#include "rocegw/fleet/v1/replica.grpc.pb.h"

namespace rocegw::api {

namespace {

// Longest wait for a controller that hangs or has just died.
constexpr std::chrono::seconds kPatience(2);

}  // namespace

// Round: one question to all other controllers, whose answers are summed. Holds itself until the
// last answer.
template <typename Request, typename Response, typename Sum>
class Replicas::Round : public std::enable_shared_from_this<Round<Request, Response, Sum>> {
 public:
  // Called one at a time.
  using Add = void (*)(const Response&, Sum&);
  using Done = std::function<void(const Sum&, uint32_t silent)>;

  Round(Replicas& replicas, Request request, Add add, Done done)
      : replicas_(replicas), request_(std::move(request)), add_(add), done_(std::move(done)) {}

  // start(async stub, context, request, response, callback).
  template <typename Start>
  void Ask(Deadline deadline, const Start& start) {
    deadline = std::min(deadline, std::chrono::system_clock::now() + kPatience);
    const std::vector<Replica> others = replicas_.Others();
    open_ = others.size() + 1;
    for (const Replica& other : others) {
      const auto call = std::make_shared<Call>();
      call->context.set_deadline(deadline);
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
        add_(*response, sum_);
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
    done_(sum_, silent_);
  }

  Replicas& replicas_;
  const Request request_;
  const Add add_;
  const Done done_;
  std::mutex mutex_;
  Sum sum_{};
  size_t open_ = 0;  // plus one while asking
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
  fleet::v1::ReplicaProgressRequest request;
  request.set_revision(revision);
  const auto add = [](const fleet::v1::ReplicaProgress& answer, sync::FleetProgress& sum) {
    sum.connected += answer.connected();
    sum.in_sync += answer.in_sync();
    sum.unadopted += answer.unadopted();
    sum.rejecting += answer.rejecting();
  };
  using Progress =
      Round<fleet::v1::ReplicaProgressRequest, fleet::v1::ReplicaProgress, sync::FleetProgress>;
  std::make_shared<Progress>(*this, std::move(request), add, std::move(done))
      ->Ask(deadline, [](auto& stub, auto... call) { stub.GetProgress(std::move(call)...); });
}

void Replicas::Adopt(const std::string& gateway, Deadline deadline,
                     std::function<void(uint32_t adopted, uint32_t silent)> done) {
  fleet::v1::ReplicaAdoptRequest request;
  request.set_gateway(gateway);
  const auto add = [](const fleet::v1::ReplicaAdopted& answer, uint32_t& sum) {
    sum += answer.gateways();
  };
  using Adoption = Round<fleet::v1::ReplicaAdoptRequest, fleet::v1::ReplicaAdopted, uint32_t>;
  std::make_shared<Adoption>(*this, std::move(request), add, std::move(done))
      ->Ask(deadline, [](auto& stub, auto... call) { stub.Adopt(std::move(call)...); });
}

}  // namespace rocegw::api
