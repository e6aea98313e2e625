// SPDX-License-Identifier: Apache-2.0
// Client side of a bidirectional stream: messages wait here while a write is pending; received ones
// are passed to the loop. Holds itself until gRPC is done with it. Created, called and abandoned on
// the loop.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

template <typename Request, typename Response>
class StreamCall : public grpc::ClientBidiReactor<Request, Response>,
                   public std::enable_shared_from_this<StreamCall<Request, Response>> {
 public:
  struct Events {
    std::function<void()> accepted;  // the server has accepted the stream; may be empty
    std::function<void(const Response&)> read;
    std::function<void(const grpc::Status&)> done;  // last event
  };
  // Both functions are called on the loop, and not after Abandon.
  StreamCall(ControlLoop& loop, Events events) : loop_(loop), events_(std::move(events)) {}

  // start(context, reactor) begins the call.
  template <typename Start>
  void Begin(const Start& start) {
    self_ = this->shared_from_this();
    start(&context_, this);
    this->AddHold();
    this->StartRead(&response_);
    this->StartCall();
  }
  void Send(Request message) {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    waiting_.push_back(std::move(message));
    if (waiting_.size() == 1) this->StartWrite(&waiting_.front());
  }
  // Ends the use of the call: no more events.
  void Abandon() {
    events_ = {};
    context_.TryCancel();
  }

  void OnReadInitialMetadataDone(bool ok) override {
    if (!ok) return;
    Post([this] {
      if (events_.accepted) events_.accepted();
    });
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Close();
    auto message = std::make_shared<Response>();
    message->Swap(&response_);
    Post([this, message] {
      if (events_.read) events_.read(*message);
    });
    this->StartRead(&response_);
  }
  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      waiting_.pop_front();
      if (ok && !over_ && !waiting_.empty()) this->StartWrite(&waiting_.front());
    }
    if (!ok) Close();
  }
  void OnDone(const grpc::Status& status) override {
    Post([this, status] {
      if (events_.done) events_.done(status);
    });
    self_.reset();
  }

 private:
  // Makes no more writes: gRPC may finish.
  void Close() {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(over_, true)) return;
    }
    this->RemoveHold();
  }
  void Post(std::function<void()> task) {
    // The loop must be the last to hold the call, and with it the channel.
    (void)loop_.Post([self = this->shared_from_this(), task = std::move(task)] { task(); });
  }

  ControlLoop& loop_;
  Events events_;  // used on the loop
  grpc::ClientContext context_;
  Response response_;
  std::mutex mutex_;
  std::deque<Request> waiting_;  // the first one is being written
  bool over_ = false;
  std::shared_ptr<StreamCall> self_;
};

}  // namespace rocegw::agent
