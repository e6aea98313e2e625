// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/gateway_questions.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "controlplane/api/watch_reactor.h"

namespace rocegw::api {
namespace {

using fleet::v1::TunnelAnswer;
using fleet::v1::TunnelQuestion;
using gateway::v1::CaptureChunk;

// Pieces that the gateway may be ahead of the caller.
constexpr uint32_t kWindow = 8;
// What a capture may take beyond its duration, on its way and at its ends.
constexpr std::chrono::seconds kBeyondDuration(30);
constexpr std::chrono::seconds kUsualDuration(10);
constexpr std::chrono::seconds kLongestDuration(600);

class CaptureReactor final : public grpc::ServerWriteReactor<CaptureChunk>,
                             public std::enable_shared_from_this<CaptureReactor> {
 public:
  explicit CaptureReactor(sync::TunnelHub& tunnels) : tunnels_(tunnels) {}

  void Start(const std::string& gateway, const TunnelQuestion& question,
             sync::TunnelHub::Clock::time_point deadline) {
    self_ = shared_from_this();
    const auto id = tunnels_.AskInParts(
        gateway, question, deadline, kWindow,
        [self = self_](const TunnelAnswer& answer) { self->OnPart(answer); },
        [self = self_](const sync::TunnelResult& result) { self->OnEnd(StatusOf(result)); });
    bool cancelled = false;
    {
      const std::lock_guard lock(mutex_);
      question_ = id;
      cancelled = cancelled_;
    }
    if (cancelled) tunnels_.Cancel(id);
  }

  void OnWriteDone(bool ok) override {
    sync::TunnelHub::QuestionId grant = 0;
    {
      const std::lock_guard lock(mutex_);
      waiting_.pop_front();
      if (!ok) waiting_.clear();
      if (ended_) {
        WriteOrFinish();
      } else if (ok) {
        grant = question_;
        if (!waiting_.empty()) StartWrite(&waiting_.front());
      }
    }
    if (grant != 0) tunnels_.Grant(grant, 1);
  }
  // The caller is gone: the gateway is told.
  void OnCancel() override {
    sync::TunnelHub::QuestionId question = 0;
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      question = question_;
    }
    if (question != 0) tunnels_.Cancel(question);
  }
  void OnDone() override { self_.reset(); }

 private:
  void OnPart(const TunnelAnswer& answer) {
    const std::lock_guard lock(mutex_);
    question_ = answer.id();
    if (finished_ || cancelled_) return;
    waiting_.push_back(answer.chunk());
    if (waiting_.size() == 1) StartWrite(&waiting_.front());
  }
  void OnEnd(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    status_ = status;
    if (waiting_.empty()) WriteOrFinish();
  }
  void WriteOrFinish() {
    if (!waiting_.empty()) return StartWrite(&waiting_.front());
    if (finished_) return;
    finished_ = true;
    Finish(status_);
  }

  sync::TunnelHub& tunnels_;
  std::mutex mutex_;
  sync::TunnelHub::QuestionId question_ = 0;
  std::deque<CaptureChunk> waiting_;  // the first one is on its way
  bool cancelled_ = false;
  bool ended_ = false;  // nothing more comes
  bool finished_ = false;
  grpc::Status status_;
  std::shared_ptr<CaptureReactor> self_;  // until gRPC is done with it
};

}  // namespace

grpc::Status StatusOf(const sync::TunnelResult& result) {
  if (result.code == 0) return grpc::Status::OK;
  return ToStatus({static_cast<grpc::StatusCode>(result.code),
                   "GATEWAY_DID_NOT_ANSWER",
                   result.message,
                   {},
                   {}});
}

grpc::ServerWriteReactor<CaptureChunk>* NewCapture(const grpc::CallbackServerContext& context,
                                                   const GatewayQuestions& questions,
                                                   const std::string& gateway,
                                                   const gateway::v1::CaptureRequest& capture) {
  using google::protobuf::util::TimeUtil;
  if (!questions.Exists(gateway)) return RefusedCapture(NotFound(gateway));
  std::chrono::nanoseconds duration(TimeUtil::DurationToNanoseconds(capture.duration()));
  if (!capture.has_duration()) duration = kUsualDuration;
  if (duration <= std::chrono::seconds(0) || duration > kLongestDuration) {
    return RefusedCapture(
        InvalidArgument({{"capture.duration", "must be more than 0 and at most 600 s"}}));
  }
  TunnelQuestion question;
  *question.mutable_capture() = capture;
  const auto ends = std::chrono::time_point_cast<sync::TunnelHub::Clock::duration>(
      sync::TunnelHub::Clock::now() + duration + kBeyondDuration);
  const auto reactor = std::make_shared<CaptureReactor>(questions.tunnels);
  reactor->Start(gateway, question, std::min(ends, context.deadline()));
  return reactor.get();
}

grpc::ServerWriteReactor<CaptureChunk>* RefusedCapture(const ApiError& error) {
  return new RefusedWatch<CaptureChunk>(error);
}

}  // namespace rocegw::api
