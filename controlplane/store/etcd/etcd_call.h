// SPDX-License-Identifier: Apache-2.0
// Call to etcd that owns itself until its answer: tries one member after the other within the time
// limit. Calls belong to a group, which can cancel all of them and wait. Thread safe; answers
// arrive on gRPC's threads.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "controlplane/store/etcd/etcd_endpoints.h"

namespace rocegw::store {

// Group of calls. A call counts until it is destroyed, together with the channel of its context:
// gRPC's threads must not destroy a process's last channel, since it would wait for them.
class EtcdCalls {
 public:
  class Call {
   public:
    virtual ~Call() = default;
    virtual void Cancel() = 0;
  };
  // First member of a call, so that it is destroyed last.
  class Place {
   public:
    explicit Place(EtcdCalls& calls) : calls_(calls) {
      const std::lock_guard lock(calls_.mutex_);
      ++calls_.count_;
    }
    ~Place() {
      const std::lock_guard lock(calls_.mutex_);
      --calls_.count_;
      calls_.changed_.notify_all();
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    EtcdCalls& calls_;
  };

  void Add(const std::shared_ptr<Call>& call) {
    const std::lock_guard lock(mutex_);
    calls_[call.get()] = call;
  }
  void Remove(Call* call) {
    const std::lock_guard lock(mutex_);
    calls_.erase(call);
  }
  // Cancels all, and returns when the last has called back and is destroyed.
  void CancelAll() {
    std::vector<std::shared_ptr<Call>> calls;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [address, weak] : calls_) {
        if (auto call = weak.lock()) calls.push_back(std::move(call));
      }
    }
    for (const auto& call : calls) call->Cancel();
    calls.clear();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Call*, std::weak_ptr<Call>> calls_;  // without an answer yet
  size_t count_ = 0;
};

template <typename Request, typename Response>
class EtcdCall : public EtcdCalls::Call,
                 public std::enable_shared_from_this<EtcdCall<Request, Response>> {
 public:
  using Clock = std::chrono::system_clock;  // gRPC's deadlines
  using Method = std::function<void(EtcdEndpoints::Member&, grpc::ClientContext*, const Request*,
                                    Response*, std::function<void(grpc::Status)>)>;
  using Done = std::function<void(const grpc::Status&, Response&)>;

  // `repeatable`: may be executed twice, so it is repeated after any failure.
  static void Start(EtcdCalls& calls, EtcdEndpoints& endpoints, const EtcdOptions& options,
                    bool repeatable, Request request, Method method, Done done) {
    auto call = std::make_shared<EtcdCall>(calls, endpoints, options, repeatable,
                                           std::move(request), std::move(method), std::move(done));
    calls.Add(call);
    call->Try();
  }

  EtcdCall(EtcdCalls& calls, EtcdEndpoints& endpoints, const EtcdOptions& options, bool repeatable,
           Request request, Method method, Done done)
      : place_(calls),
        calls_(calls),
        endpoints_(endpoints),
        try_timeout_(options.try_timeout),
        deadline_(Clock::now() + options.timeout),
        repeatable_(repeatable),
        request_(std::move(request)),
        method_(std::move(method)),
        done_(std::move(done)) {}

  void Cancel() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (context_.has_value()) context_->TryCancel();
    if (alarm_ != nullptr) alarm_->Cancel();
  }

 private:
  void Try() {
    {
      const std::lock_guard lock(mutex_);
      alarm_.reset();  // the alarm refers to this object
      context_.emplace();
      context_->set_deadline(std::min(deadline_, Clock::now() + try_timeout_));
      RequireLeader(*context_);
      if (cancelled_) context_->TryCancel();
    }
    response_.Clear();
    member_ = endpoints_.current();
    method_(endpoints_.member(member_), &*context_, &request_, &response_,
            [self = this->shared_from_this()](grpc::Status status) { self->Ended(status); });
  }

  void Ended(const grpc::Status& status) {
    const bool again = WorthAnotherTry(status) && (repeatable_ || SurelyNotDone(status));
    if (WorthAnotherTry(status)) endpoints_.Failed(member_);
    {
      const std::lock_guard lock(mutex_);
      if (again && !cancelled_ && Clock::now() + kPause < deadline_) {
        // Short pause before the next member, in case of an election. A new alarm each time: the
        // callback of the last one may be what runs here.
        alarm_ = std::make_unique<grpc::Alarm>();
        alarm_->Set(Clock::now() + kPause,
                    [self = this->shared_from_this()](bool) { self->Try(); });
        return;
      }
    }
    done_(status, response_);
    calls_.Remove(this);
  }

  static constexpr std::chrono::milliseconds kPause{50};

  const EtcdCalls::Place place_;
  EtcdCalls& calls_;
  EtcdEndpoints& endpoints_;
  const std::chrono::milliseconds try_timeout_;
  const Clock::time_point deadline_;
  const bool repeatable_;
  const Request request_;
  const Method method_;
  const Done done_;
  Response response_;
  size_t member_ = 0;
  std::mutex mutex_;
  std::optional<grpc::ClientContext> context_;
  std::unique_ptr<grpc::Alarm> alarm_;
  bool cancelled_ = false;
};

}  // namespace rocegw::store
