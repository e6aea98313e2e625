// SPDX-License-Identifier: Apache-2.0
// Unary call of kubelet that the agent's loop answers, now or later. A call whose client cancels it
// ends without the loop, so that a server can be stopped on the loop.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>
#include <utility>

#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

template <typename Response>
class LoopCall final : public grpc::ServerUnaryReactor {
 public:
  // Shared with the answering code: the reactor is destroyed when gRPC is done with it. Finish may
  // be called on any thread; only the first call counts.
  struct Answer {
    std::mutex mutex;
    LoopCall* call = nullptr;  // nullptr: finished
    Response* response = nullptr;

    void Finish(const grpc::Status& status, const Response& value) {
      LoopCall* mine = nullptr;
      {
        const std::lock_guard lock(mutex);
        mine = std::exchange(call, nullptr);
        if (mine != nullptr) *response = value;
      }
      if (mine != nullptr) mine->grpc::ServerUnaryReactor::Finish(status);
    }
  };

  explicit LoopCall(Response* response) {
    answer_->call = this;
    answer_->response = response;
  }
  std::shared_ptr<Answer> answer() const { return answer_; }
  void OnCancel() override { answer_->Finish(grpc::Status::CANCELLED, {}); }
  void OnDone() override { delete this; }

 private:
  const std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
};

// Runs task(answer) on the loop if *alive is still true there. Any thread.
template <typename Response, typename Task>
grpc::ServerUnaryReactor* CallOnLoop(ControlLoop& loop, std::shared_ptr<bool> alive,
                                     Response* response, Task task) {
  auto* const call = new LoopCall<Response>(response);
  const auto answer = call->answer();
  const bool posted = loop.Post([task = std::move(task), answer, alive = std::move(alive)] {
    if (*alive) task(answer);
  });
  if (!posted) answer->Finish({grpc::StatusCode::UNAVAILABLE, "the agent is stopping"}, {});
  return call;
}

}  // namespace rocegw::agent
