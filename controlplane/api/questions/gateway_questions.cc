// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/questions/gateway_questions.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "controlplane/api/calls/audit_note.h"
#include "controlplane/api/calls/watch_reactor.h"
#include "proto/rules/capture_duration.h"

namespace rocegw::api {
namespace {

using fleet::v1::TunnelAnswer;
using fleet::v1::TunnelQuestion;
using gateway::v1::CaptureChunk;

// Parts that the gateway may send ahead of the caller.
constexpr uint32_t kWindow = 8;
// Time that a capture may take beyond its duration.
constexpr std::chrono::seconds kBeyondDuration(30);

class CaptureReactor final : public grpc::ServerWriteReactor<CaptureChunk>,
                             public std::enable_shared_from_this<CaptureReactor> {
 public:
  explicit CaptureReactor(QuestionRouter& router) : router_(router) {}

  // Keeps the object until gRPC is done with it.
  void Live() { self_ = shared_from_this(); }
  void Start(const std::string& gateway, const TunnelQuestion& question,
             QuestionRouter::Clock::time_point deadline) {
    {
      const std::lock_guard lock(mutex_);
      if (cancelled_) return OnEndLocked(grpc::Status::CANCELLED);
    }
    const auto id = router_.AskInParts(
        gateway, question, deadline, kWindow,
        [self = shared_from_this()](const TunnelAnswer& answer) { self->OnPart(answer); },
        [self = shared_from_this()](const sync::TunnelResult& result) {
          self->OnEnd(StatusOf(result));
        });
    bool cancelled = false;
    {
      const std::lock_guard lock(mutex_);
      question_ = id;
      cancelled = cancelled_;
    }
    if (cancelled) router_.Cancel(id);
  }

  void OnWriteDone(bool ok) override {
    QuestionRouter::QuestionId grant = 0;
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
    if (grant != 0) router_.Grant(grant, 1);
  }
  // Called when the caller has cancelled; cancels the question at the gateway.
  void OnCancel() override {
    QuestionRouter::QuestionId question = 0;
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      question = question_;
    }
    if (question != 0) router_.Cancel(question);
  }
  void OnDone() override { self_.reset(); }
  void OnEnd(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    OnEndLocked(status);
  }

 private:
  void OnPart(const TunnelAnswer& answer) {
    const std::lock_guard lock(mutex_);
    question_ = answer.id();
    if (finished_ || cancelled_) return;
    waiting_.push_back(answer.chunk());
    if (waiting_.size() == 1) StartWrite(&waiting_.front());
  }
  void OnEndLocked(const grpc::Status& status) {
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

  QuestionRouter& router_;
  std::mutex mutex_;
  QuestionRouter::QuestionId question_ = 0;
  std::deque<CaptureChunk> waiting_;  // the first one is being written
  bool cancelled_ = false;
  bool ended_ = false;  // no more parts
  bool finished_ = false;
  grpc::Status status_;
  std::shared_ptr<CaptureReactor> self_;  // held until gRPC is done
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
                                                   const Admitted& caller,
                                                   const google::protobuf::Message& asked,
                                                   const std::string& gateway,
                                                   const gateway::v1::CaptureRequest& capture) {
  using Clock = QuestionRouter::Clock;
  if (!questions.Exists(gateway)) return RefusedCapture(NotFound(gateway));
  const auto duration = rules::CaptureDurationOf(capture);
  if (!duration)
    return RefusedCapture(InvalidArgument({{"capture.duration", rules::kCaptureDurationRule}}));
  TunnelQuestion question;
  *question.mutable_capture() = capture;
  const auto reactor = std::make_shared<CaptureReactor>(questions.router);
  reactor->Live();
  store::Transaction record;
  record.then = {AuditOf(caller, gateway, asked)};
  questions.backend.store.TxnAsync(
      std::move(record),
      [reactor, gateway, question, duration = *duration,
       deadline = context.deadline()](const StatusOr<store::TransactionResult>& written) {
        if (!written.ok()) return reactor->OnEnd(ToStatus(FromStore(written.status())));
        const auto ends = std::chrono::time_point_cast<Clock::duration>(Clock::now() + duration +
                                                                        kBeyondDuration);
        reactor->Start(gateway, question, std::min(ends, deadline));
      });
  return reactor.get();
}

grpc::ServerWriteReactor<CaptureChunk>* RefusedCapture(const ApiError& error) {
  return new RefusedWatch<CaptureChunk>(error);
}

}  // namespace rocegw::api
