// SPDX-License-Identifier: Apache-2.0
#include "gateway/service/debug_service.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "gateway/service/call_rules.h"
#include "gateway/service/explain.h"
#include "gateway/service/state_messages.h"
#include "proto/rules/capture_duration.h"
#include "proto/rules/check.h"

namespace rocegw::service {
namespace {

using gateway::v1::CaptureChunk;
using gateway::v1::CaptureRequest;

constexpr size_t kChunk = 64 << 10;
constexpr uint64_t kUsualBytes = 16 << 20;
// Time without a read after which a reader counts as gone.
constexpr std::chrono::seconds kReaderPatience(30);

// Returns what is wrong with a field of the request; empty: nothing.
std::string WrongIn(const google::protobuf::Message& request) {
  std::string text;
  for (const rules::Violation& violation : rules::Check(request))
    text += (text.empty() ? "" : "; ") + violation.field + " " + violation.text;
  return text;
}

grpc::Status StatusOf(const Status& status) {
  switch (status.error()) {
    case 0:
      return grpc::Status::OK;
    case EBUSY:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, status.text()};
    case ENOENT:
      return {grpc::StatusCode::NOT_FOUND, status.text()};
    case ENOTSUP:
      return {grpc::StatusCode::UNIMPLEMENTED, status.text()};
    case ECANCELED:
      return grpc::Status::CANCELLED;
    default:
      return {grpc::StatusCode::UNAVAILABLE, status.text()};
  }
}

gateway::v1::CaptureEnd EndOf(port::CaptureEnd end) {
  switch (end) {
    case port::CaptureEnd::kDuration:
      return gateway::v1::DURATION_OVER;
    case port::CaptureEnd::kBytes:
      return gateway::v1::BYTES_REACHED;
    case port::CaptureEnd::kPackets:
      return gateway::v1::PACKETS_REACHED;
    case port::CaptureEnd::kStopped:
    case port::CaptureEnd::kFailed:
      break;
  }
  return gateway::v1::GATEWAY_STOPS;
}

// Call of a capture, and the capture's sink.
class CaptureCall final : public grpc::ServerWriteReactor<CaptureChunk>,
                          public port::CaptureSink,
                          public std::enable_shared_from_this<CaptureCall> {
 public:
  explicit CaptureCall(CaptureSource& source) : source_(source) {}

  void Start(const session::CaptureOrder& order) {
    self_ = shared_from_this();
    source_.StartCapture(order, self_, [self = self_](const Status& status) {
      if (!status.ok()) self->FinishWith(StatusOf(status));
    });
  }
  void Refuse(const grpc::Status& status) {
    self_ = shared_from_this();
    FinishWith(status);
  }

  Status Write(std::span<const uint8_t> bytes) override {
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), kChunk));
      CaptureChunk chunk;
      chunk.set_data(piece.data(), piece.size());
      if (Status status = Send(std::move(chunk)); !status.ok()) return status;
      bytes = bytes.subspan(piece.size());
    }
    return OkStatus();
  }
  void End(const port::CaptureSummary& summary) override {
    CaptureChunk chunk;
    chunk.mutable_summary()->set_end(EndOf(summary.end));
    chunk.mutable_summary()->set_packets(summary.packets);
    chunk.mutable_summary()->set_missed(summary.missed);
    chunk.mutable_summary()->set_bytes(summary.bytes);
    Status status = summary.write_status;
    if (status.ok()) status = Send(std::move(chunk));
    FinishWith(StatusOf(status));
  }
  void Abort() override {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) aborted_ = true;
    changed_.notify_all();
  }
  void OnCancel() override {
    Abort();
    source_.AbortCapture(shared_from_this());
    // A capture that has not begun cannot end.
    FinishWith(grpc::Status::CANCELLED);
  }
  void OnDone() override { self_.reset(); }

 private:
  // Sends one message at a time: gRPC accepts the next one when this one has left.
  Status Send(CaptureChunk chunk) {
    std::unique_lock lock(mutex_);
    if (aborted_ || finished_) return {ECANCELED, "the capture was ended by its reader"};
    chunk_ = std::move(chunk);
    writing_ = true;
    StartWrite(&chunk_);
    if (!changed_.wait_for(lock, kReaderPatience, [this] { return aborted_ || !writing_; }))
      return {ETIMEDOUT, "the capture is not read"};
    if (aborted_) return {ECANCELED, "the capture was ended by its reader"};
    return OkStatus();
  }
  void FinishWith(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(finished_, true)) return;
    Finish(status);
  }

  CaptureSource& source_;
  std::mutex mutex_;
  std::condition_variable changed_;
  CaptureChunk chunk_;
  bool writing_ = false;
  bool aborted_ = false;
  bool finished_ = false;
  std::shared_ptr<CaptureCall> self_;  // until gRPC has finished with the call
};

}  // namespace

grpc::ServerUnaryReactor* DebugService::Explain(grpc::CallbackServerContext* context,
                                                const gateway::v1::ExplainRequest* request,
                                                gateway::v1::ExplainResponse* response) {
  if (grpc::Status wrong = CheckDeadline(*context); !wrong.ok())
    return service::Refuse(context, wrong);
  if (const std::string wrong = WrongIn(*request); !wrong.empty())
    return service::Refuse(context, {grpc::StatusCode::INVALID_ARGUMENT, wrong});
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  config_.Describe([this, reactor, request, response](
                       bool running, const gateway::v1::GetConfigResponse& config) {
    if (!running)
      return reactor->Finish({grpc::StatusCode::UNAVAILABLE, "the gateway is stopping"});
    state_.Snapshot(
        {.sessions = true, .qps = true, .pools = true, .events = true},
        [this, reactor, request, response, config](const session::StateSnapshot& snapshot) {
          if (!snapshot.unanswered.empty())
            return reactor->Finish({grpc::StatusCode::UNAVAILABLE, snapshot.unanswered});
          *response = service::Explain(*request, identity_, readiness_.reason(), snapshot, config);
          reactor->Finish(grpc::Status::OK);
        });
  });
  return reactor;
}

grpc::ServerUnaryReactor* DebugService::Diagnose(grpc::CallbackServerContext* context,
                                                 const gateway::v1::DiagnoseRequest*,
                                                 gateway::v1::DiagnoseResponse* response) {
  if (grpc::Status wrong = CheckDeadline(*context); !wrong.ok())
    return service::Refuse(context, wrong);
  if (diagnoses_ == nullptr)
    return service::Refuse(context, {grpc::StatusCode::UNIMPLEMENTED, "it does not diagnose"});
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  diagnoses_->Diagnose([this, reactor, response](const gateway::v1::DiagnoseResponse& found) {
    *response = found;
    FillTime(identity_.now_ns(), *response->mutable_read_time());
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerWriteReactor<CaptureChunk>* DebugService::Capture(grpc::CallbackServerContext*,
                                                              const CaptureRequest* request) {
  const auto call = std::make_shared<CaptureCall>(captures_);
  std::string wrong = WrongIn(*request);
  const auto duration = rules::CaptureDurationOf(*request);
  if (!duration) wrong = std::string("duration ") + rules::kCaptureDurationRule;
  if (!wrong.empty()) {
    call->Refuse({grpc::StatusCode::INVALID_ARGUMENT, wrong});
    return call.get();
  }
  session::CaptureOrder order;
  order.pool = request->pool();
  order.qpn = Qpn{request->qpn()};
  // The text was checked; an empty text means any peer.
  order.peer = wire::ParseGid(request->peer()).value_or(wire::Gid());
  order.bounds.max_bytes = request->max_bytes() == 0 ? kUsualBytes : request->max_bytes();
  order.bounds.max_packets = request->max_packets();
  order.bounds.snap_length = request->snap_length();
  order.bounds.duration = Nanoseconds(duration->count());
  call->Start(order);
  return call.get();
}

}  // namespace rocegw::service
