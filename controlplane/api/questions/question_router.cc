// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/questions/question_router.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <utility>
#include <vector>

#include "rocegw/fleet/v1/replica.grpc.pb.h"

namespace rocegw::api {
namespace {

using fleet::v1::ForwardRequest;
using fleet::v1::TunnelAnswer;
using fleet::v1::TunnelQuestion;

// Flag that distinguishes ids of forwarded questions from those of the tunnels.
constexpr QuestionRouter::QuestionId kPassedOn = QuestionRouter::QuestionId{1} << 63;

}  // namespace

// Forwarded question. gRPC's threads and the caller's.
class QuestionRouter::Call final : public grpc::ClientBidiReactor<ForwardRequest, TunnelAnswer> {
 public:
  Call(QuestionRouter& router, QuestionId id, const std::shared_ptr<grpc::Channel>& channel,
       Part part, Done done)
      : router_(router),
        id_(id),
        stub_(fleet::v1::ReplicaService::NewStub(channel)),
        part_(std::move(part)),
        done_(std::move(done)) {}

  QuestionId id() const { return id_; }

  void Start(ForwardRequest first, Clock::time_point deadline) {
    context_.set_deadline(deadline);
    stub_->async()->Forward(&context_, this);
    // Grants may be sent at any time until the last answer.
    AddHold();
    Send(std::move(first));
    StartRead(&answer_);
    StartCall();
  }
  void Send(ForwardRequest request) {
    const std::lock_guard lock(mutex_);
    if (!open_) return;
    waiting_.push_back(std::move(request));
    if (waiting_.size() == 1) StartWrite(&waiting_.front());
  }
  void Cancel() { context_.TryCancel(); }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    waiting_.pop_front();
    if (ok && open_ && !waiting_.empty()) StartWrite(&waiting_.front());
  }
  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        const std::lock_guard lock(mutex_);
        open_ = false;
      }
      return RemoveHold();
    }
    answer_.set_id(id_);
    if (part_) {
      part_(answer_);
    } else {
      parts_.push_back(answer_);
    }
    StartRead(&answer_);
  }
  void OnDone(const grpc::Status& status) override {
    done_({static_cast<int>(status.error_code()), status.error_message(), std::move(parts_)});
    router_.Ended(id_);
  }

 private:
  QuestionRouter& router_;
  const QuestionId id_;
  const std::unique_ptr<fleet::v1::ReplicaService::Stub> stub_;
  const Part part_;
  const Done done_;
  grpc::ClientContext context_;
  TunnelAnswer answer_;
  std::vector<TunnelAnswer> parts_;
  std::mutex mutex_;
  std::deque<ForwardRequest> waiting_;  // the first one is being written
  bool open_ = true;
};

QuestionRouter::~QuestionRouter() {
  Close();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return calls_.empty(); });
}

void QuestionRouter::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& [id, call] : calls_) call->Cancel();
}

Replicas::Replica QuestionRouter::OwnerOf(const std::string& gateway) const {
  return tunnels_.Has(gateway) ? Replicas::Replica{} : replicas_.OwnerOf(gateway);
}

std::shared_ptr<QuestionRouter::Call> QuestionRouter::Begin(const Replicas::Replica& owner,
                                                            const std::string& gateway,
                                                            const TunnelQuestion& question,
                                                            Clock::time_point deadline,
                                                            uint32_t window, Part part, Done done) {
  std::shared_ptr<Call> call;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return nullptr;
    call = std::make_shared<Call>(*this, kPassedOn | ++last_, replicas_.Connection(owner),
                                  std::move(part), std::move(done));
    calls_[call->id()] = call;
  }
  ForwardRequest first;
  first.set_gateway(gateway);
  *first.mutable_question() = question;
  first.set_grant(window);
  call->Start(std::move(first), deadline);
  return call;
}

void QuestionRouter::Ask(const std::string& gateway, const TunnelQuestion& question,
                         Clock::time_point deadline, Done done) {
  const Replicas::Replica owner = OwnerOf(gateway);
  if (owner.address.empty()) return tunnels_.Ask(gateway, question, deadline, std::move(done));
  if (Begin(owner, gateway, question, deadline, 0, nullptr, done) == nullptr)
    tunnels_.Ask(gateway, question, deadline, std::move(done));
}

QuestionRouter::QuestionId QuestionRouter::AskInParts(const std::string& gateway,
                                                      const TunnelQuestion& question,
                                                      Clock::time_point deadline, uint32_t window,
                                                      Part part, Done done) {
  const Replicas::Replica owner = OwnerOf(gateway);
  if (!owner.address.empty()) {
    if (const auto call = Begin(owner, gateway, question, deadline, window, part, done))
      return call->id();
  }
  return tunnels_.AskInParts(gateway, question, deadline, window, std::move(part), std::move(done));
}

std::shared_ptr<QuestionRouter::Call> QuestionRouter::Find(QuestionId question) {
  const std::lock_guard lock(mutex_);
  const auto at = calls_.find(question);
  return at == calls_.end() ? nullptr : at->second;
}

void QuestionRouter::Grant(QuestionId question, uint32_t parts) {
  if ((question & kPassedOn) == 0) return tunnels_.Grant(question, parts);
  ForwardRequest grant;
  grant.set_grant(parts);
  if (const auto call = Find(question)) call->Send(std::move(grant));
}

void QuestionRouter::Cancel(QuestionId question) {
  if ((question & kPassedOn) == 0) return tunnels_.Cancel(question);
  if (const auto call = Find(question)) call->Cancel();
}

void QuestionRouter::Ended(QuestionId question) {
  std::shared_ptr<Call> last;  // destroyed outside of the lock
  const std::lock_guard lock(mutex_);
  const auto at = calls_.find(question);
  last = std::move(at->second);
  calls_.erase(at);
  ended_.notify_all();
}

}  // namespace rocegw::api
