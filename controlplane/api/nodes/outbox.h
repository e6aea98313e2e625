// SPDX-License-Identifier: Apache-2.0
// Write side of a bidirectional stream: queues messages while a write is pending, and finishes the
// stream once, after which nothing is written. Shared by the reactor, which gRPC deletes with the
// call, and senders, which may hold it a little longer. Any thread.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "controlplane/api/calls/api_error.h"
#include "controlplane/sync/node_hub.h"

namespace rocegw::api {

template <typename Request, typename Response>
class Outbox {
 public:
  explicit Outbox(grpc::ServerBidiReactor<Request, Response>& reactor) : reactor_(&reactor) {}

  void Send(Response message) {
    const std::lock_guard lock(mutex_);
    if (ended_ || last_.has_value()) return;
    waiting_.push_back(std::move(message));
    if (waiting_.size() == 1) reactor_->StartWrite(&waiting_.front());
  }
  // Must be called before the first message.
  void SendInitialMetadata() {
    const std::lock_guard lock(mutex_);
    if (!ended_ && waiting_.empty()) reactor_->StartSendInitialMetadata();
  }
  void Read(Request* into) {
    const std::lock_guard lock(mutex_);
    if (!ended_) reactor_->StartRead(into);
  }
  void OnWriteDone(bool ok) {
    const std::lock_guard lock(mutex_);
    waiting_.pop_front();
    if (!ok) waiting_.clear();
    if (ended_) return;
    if (!waiting_.empty()) {
      reactor_->StartWrite(&waiting_.front());
    } else if (last_.has_value()) {
      ended_ = true;
      reactor_->Finish(*last_);
    }
  }
  // Finishes the stream after all queued messages were sent.
  void FinishAfterAll(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (ended_ || last_.has_value()) return;
    if (!waiting_.empty()) {
      last_ = status;
      return;
    }
    ended_ = true;
    reactor_->Finish(status);
  }
  // Finishes the stream; the first status counts.
  void Finish(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    reactor_->Finish(status);
  }

 private:
  std::mutex mutex_;
  grpc::ServerBidiReactor<Request, Response>* const reactor_;  // not used after Finish
  std::deque<Response> waiting_;                               // the first one is being written
  std::optional<grpc::Status> last_;                           // sent after all messages
  bool ended_ = false;
};

// Returns the status that the agent gets when the controller ends its stream.
grpc::Status StatusOf(sync::StreamEnd why);

}  // namespace rocegw::api
