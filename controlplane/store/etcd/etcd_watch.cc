// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/etcd/etcd_watch.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace rocegw::store {
namespace {

constexpr std::chrono::milliseconds kReopen{100};
// Longer than reaching another member and electing a leader takes.
constexpr std::chrono::seconds kOutOfReach{5};

class Stream;

// State that outlives a stream. Shared with gRPC's callbacks; `mutex` guards all mutable fields.
class WatchState : public std::enable_shared_from_this<WatchState> {
 public:
  WatchState(EtcdEndpoints& endpoints, const EtcdMessages& messages, KeyRange range, Revision from,
             std::function<void()> ready)
      : endpoints_(endpoints),
        messages_(messages),
        range_(std::move(range)),
        ready_callback_(std::move(ready)),
        next_(from) {}

  void Open();
  StatusOr<std::optional<Changes>> TryNext();
  Status reach() const;
  // Returns when no part of it runs any more.
  void Close();

  // Called by the stream.
  void OnMessage(const etcdserverpb::WatchResponse& response);
  void OnDone();
  // Reports that the stream is destroyed.
  void OnEnd(size_t member);

 private:
  void Take(const etcdserverpb::WatchResponse& response);
  void FinishTransaction();
  void Notify();

  EtcdEndpoints& endpoints_;
  const EtcdMessages& messages_;
  const KeyRange range_;
  const std::function<void()> ready_callback_;

  std::mutex calling_;  // held during the callback
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::shared_ptr<Stream> stream_;
  bool stream_alive_ = false;
  bool want_read_ = false;  // the stream exists and no read is pending
  // Time since which no stream has delivered anything; empty: the current one has.
  std::optional<std::chrono::steady_clock::time_point> away_since_ =
      std::chrono::steady_clock::now();
  std::unique_ptr<grpc::Alarm> alarm_;
  bool alarm_set_ = false;
  Revision next_;      // everything before it was delivered
  Changes gathering_;  // a transaction that may continue in the next message
  std::deque<Changes> taken_;
  Status failed_;
  bool armed_ = false;
  bool closed_ = false;
};

class Stream
    : public grpc::ClientBidiReactor<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse>,
      public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<WatchState> state, size_t member) : end_{std::move(state), member} {}

  void Start(EtcdEndpoints& endpoints, etcdserverpb::WatchRequest request) {
    self_ = shared_from_this();
    request_ = std::move(request);
    RequireLeader(context_);
    endpoints.member(end_.member).watch->async()->Watch(&context_, this);
    // Reads begin outside of reactions: the hold delays the end of the stream until the last read.
    AddHold();
    StartWrite(&request_);
    StartRead(&response_);
    StartCall();
  }
  void ReadNext() { StartRead(&response_); }
  void Cancel() { context_.TryCancel(); }
  // Releases the hold: no further read will begin.
  void LetGo() { RemoveHold(); }

  void OnReadDone(bool ok) override {
    if (ok) {
      end_.state->OnMessage(response_);
    } else {
      LetGo();
    }
  }
  void OnDone(const grpc::Status&) override {
    const auto self = std::move(self_);
    end_.state->OnDone();
  }

 private:
  // First member, so that it is destroyed last: a watch has ended when its stream has released the
  // channel, because gRPC's threads must not destroy a process's last channel.
  struct End {
    std::shared_ptr<WatchState> state;
    size_t member;
    ~End() { state->OnEnd(member); }
  };

  const End end_;
  std::shared_ptr<Stream> self_;  // held until gRPC is done
  grpc::ClientContext context_;
  etcdserverpb::WatchRequest request_;
  etcdserverpb::WatchResponse response_;
};

void WatchState::Open() {
  etcdserverpb::WatchRequest request;
  std::shared_ptr<Stream> stream;
  {
    const std::lock_guard lock(mutex_);
    alarm_set_ = false;
    alarm_.reset();  // the alarm refers to this object
    if (closed_) return ended_.notify_all();
    auto& create = *request.mutable_create_request();
    messages_.SetRange(range_, &create);
    // Starts one revision earlier, which is then skipped: etcd reports a watch as compacted only
    // below the compaction revision, but deletions of that revision itself may be gone as well.
    create.set_start_revision(std::max<Revision>(1, next_ - 1));
    create.set_progress_notify(true);
    create.set_fragment(true);
    gathering_ = {};
    stream_ = std::make_shared<Stream>(shared_from_this(), endpoints_.current());
    stream = stream_;
    stream_alive_ = true;
    want_read_ = false;
  }
  stream->Start(endpoints_, std::move(request));
  const std::lock_guard lock(mutex_);
  if (closed_) stream->Cancel();
}

void WatchState::FinishTransaction() {
  if (gathering_.changes.empty()) return;
  next_ = gathering_.revision + 1;
  taken_.push_back(std::exchange(gathering_, {}));
}

void WatchState::Take(const etcdserverpb::WatchResponse& response) {
  if (response.canceled()) {
    // Every other outcome ends the stream, and a new one is opened.
    if (response.compact_revision() > 0) {
      failed_ =
          Status(kCompacted, "etcd: revisions before " +
                                 std::to_string(response.compact_revision() + 1) + " are gone");
    }
    stream_->Cancel();
    return;
  }
  for (const auto& event : response.events()) {
    const Revision revision = event.kv().mod_revision();
    if (revision < next_) continue;
    if (revision != gathering_.revision) FinishTransaction();
    gathering_.revision = revision;
    gathering_.changes.push_back(messages_.To(event));
  }
  if (!response.fragment()) FinishTransaction();
  // Progress message: everything up to this revision was sent.
  if (!response.created() && response.events().empty() && !response.fragment()) {
    next_ = std::max<Revision>(next_, response.header().revision() + 1);
  }
}

void WatchState::OnMessage(const etcdserverpb::WatchResponse& response) {
  std::shared_ptr<Stream> reader;
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    away_since_.reset();
    if (!closed_) Take(response);
    if (taken_.empty() || closed_) {
      reader = stream_;
    } else {
      want_read_ = true;
    }
    notify = (!taken_.empty() || !failed_.ok()) && std::exchange(armed_, false);
  }
  if (reader != nullptr) reader->ReadNext();
  if (notify) Notify();
}

void WatchState::Notify() {
  const std::lock_guard calling(calling_);
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
  }
  if (ready_callback_) ready_callback_();
}

void WatchState::OnDone() {
  const std::lock_guard lock(mutex_);
  // Not the last reference: gRPC still holds one.
  stream_.reset();
  want_read_ = false;
}

void WatchState::OnEnd(size_t member) {
  const std::lock_guard lock(mutex_);
  stream_alive_ = false;
  if (!away_since_) away_since_ = std::chrono::steady_clock::now();
  if (closed_ || !failed_.ok()) return ended_.notify_all();
  endpoints_.Failed(member);
  alarm_set_ = true;
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(std::chrono::system_clock::now() + kReopen,
              [self = shared_from_this()](bool) { self->Open(); });
}

StatusOr<std::optional<Changes>> WatchState::TryNext() {
  std::shared_ptr<Stream> reader;
  {
    const std::lock_guard lock(mutex_);
    if (!taken_.empty()) {
      std::optional<Changes> first = std::move(taken_.front());
      taken_.pop_front();
      return first;
    }
    if (!failed_.ok()) return failed_;
    armed_ = true;
    if (std::exchange(want_read_, false)) reader = stream_;
  }
  if (reader != nullptr) reader->ReadNext();
  return std::optional<Changes>();
}

Status WatchState::reach() const {
  const std::lock_guard lock(mutex_);
  if (!away_since_) return OkStatus();
  const auto away = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::steady_clock::now() - *away_since_);
  if (away < kOutOfReach) return OkStatus();
  return {kUnavailable, "no member of etcd answers a watch"};
}

void WatchState::Close() {
  std::shared_ptr<Stream> idle;
  {
    // Waits for a running callback; no other begins.
    const std::lock_guard calling(calling_);
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (stream_ != nullptr) stream_->Cancel();
    if (std::exchange(want_read_, false)) idle = stream_;
    if (alarm_ != nullptr) alarm_->Cancel();
  }
  if (idle != nullptr) idle->LetGo();
  idle.reset();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return !stream_alive_ && !alarm_set_; });
}

class EtcdWatch : public Watch {
 public:
  explicit EtcdWatch(std::shared_ptr<WatchState> state) : state_(std::move(state)) {}
  ~EtcdWatch() override { state_->Close(); }
  StatusOr<std::optional<Changes>> TryNext() override { return state_->TryNext(); }
  Status reach() const override { return state_->reach(); }

 private:
  const std::shared_ptr<WatchState> state_;
};

}  // namespace

std::unique_ptr<Watch> NewEtcdWatch(EtcdEndpoints& endpoints, const EtcdMessages& messages,
                                    KeyRange range, Revision from, std::function<void()> ready) {
  auto state =
      std::make_shared<WatchState>(endpoints, messages, std::move(range), from, std::move(ready));
  state->Open();
  return std::make_unique<EtcdWatch>(std::move(state));
}

}  // namespace rocegw::store
