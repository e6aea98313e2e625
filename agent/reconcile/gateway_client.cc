// SPDX-License-Identifier: Apache-2.0
#include "agent/reconcile/gateway_client.h"

#include <google/protobuf/util/time_util.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>
#include <utility>
#include <vector>

#include "agent/reconcile/unary_call.h"
#include "controlplane/model/push_parts.h"
#include "proto/tunnel/tunnel_calls.h"

namespace rocegw::agent {
namespace {

using google::protobuf::util::TimeUtil;

constexpr std::chrono::seconds kProbeDeadline(5);
// A gateway that creates thousands of sockets and reserves needs time.
constexpr std::chrono::seconds kApplyDeadline(55);
// The gateway refuses calls with more than a minute.
constexpr Duration kLongestTakeOver = Seconds(55);
// Time that the gateway waits for an attach; the call's deadline is longer.
constexpr int kHeldWaitSeconds = 20;
constexpr std::chrono::seconds kHeldDeadline(25);

grpc::ByteBuffer BytesOf(const google::protobuf::Message& message) {
  const grpc::Slice bytes(message.SerializeAsString());
  return {&bytes, 1};
}

bool Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  grpc::Slice slice;
  if (!bytes.DumpToSingleSlice(&slice).ok()) return false;
  return message.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
}

Status ErrorOf(const grpc::Status& status) {
  return {EIO, "the gateway does not answer: " + status.error_message()};
}

}  // namespace

// Pending most of the time, so the client must be able to cancel it and wait for `ended`.
struct GatewayClient::HeldCall {
  grpc::ClientContext context;
  gateway::v1::ListHeldAttachesRequest request;
  gateway::v1::ListHeldAttachesResponse response;
  std::promise<void> ended;
};

struct GatewayClient::Stubs {
  explicit Stubs(std::shared_ptr<grpc::Channel> c)
      : channel(std::move(c)),
        config(gateway::v1::ConfigService::NewStub(channel)),
        state(gateway::v1::StateService::NewStub(channel)),
        identity(gateway::v1::IdentityService::NewStub(channel)),
        debug(gateway::v1::DebugService::NewStub(channel)),
        take_overs(gateway::v1::TakeOverService::NewStub(channel)),
        any(channel) {}
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<gateway::v1::ConfigService::Stub> config;
  std::unique_ptr<gateway::v1::StateService::Stub> state;
  std::unique_ptr<gateway::v1::IdentityService::Stub> identity;
  std::unique_ptr<gateway::v1::DebugService::Stub> debug;
  std::unique_ptr<gateway::v1::TakeOverService::Stub> take_overs;
  grpc::GenericStub any;           // for the questions of the tunnel
  bool closed = false;             // used on the loop's thread
  std::shared_ptr<HeldCall> held;  // pending call; used on the loop's thread
};

GatewayClient::GatewayClient(ControlLoop& loop, const std::string& socket) : loop_(loop) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // A restarted gateway should be noticed soon.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  stubs_ = std::make_shared<Stubs>(
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
}

// Capture of the gateway on its way to the controller: a part is read after a grant, so that a slow
// controller slows down the gateway instead of filling memory here. Holds itself until gRPC is done
// with it; everything except gRPC's callbacks runs on the loop.
class GatewayClient::Capture final : public grpc::ClientReadReactor<gateway::v1::CaptureChunk>,
                                     public std::enable_shared_from_this<Capture> {
 public:
  using Part = std::function<void(fleet::v1::TunnelAnswer)>;

  Capture(ControlLoop& loop, std::shared_ptr<Stubs> stubs, Part part)
      : loop_(loop), stubs_(std::move(stubs)), part_(std::move(part)) {}

  void Start(const gateway::v1::CaptureRequest& request,
             std::chrono::system_clock::time_point deadline) {
    self_ = shared_from_this();
    request_ = request;
    context_.set_deadline(deadline);
    stubs_->debug->async()->Capture(&context_, &request_, this);
    AddHold();
    StartCall();
  }
  void Grant(uint32_t parts) {
    granted_ += parts;
    ReadNext();
  }
  void Cancel() {
    part_ = {};
    context_.TryCancel();
    // Without a pending read the end of the stream is not noticed.
    ReadNext();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return RemoveHold();
    Post([this] { OnPiece(); });
  }
  void OnDone(const grpc::Status& status) override {
    Post([this, status] {
      if (part_ && !told_end_) {
        fleet::v1::TunnelAnswer answer;
        answer.set_code(status.ok() ? grpc::StatusCode::UNAVAILABLE : status.error_code());
        answer.set_message(status.ok() ? "the gateway ended the capture" : status.error_message());
        std::exchange(part_, {})(std::move(answer));
      }
    });
    self_.reset();
  }

 private:
  void OnPiece() {
    reading_ = false;
    fleet::v1::TunnelAnswer answer;
    const bool last = chunk_.has_summary();
    answer.set_more(!last);
    answer.mutable_chunk()->Swap(&chunk_);
    told_end_ = last;
    const Part part = last ? std::exchange(part_, {}) : part_;
    if (part) part(std::move(answer));
    ReadNext();
  }
  void ReadNext() {
    // After the last part, or after a cancel, only the end of the stream follows.
    const bool draining = told_end_ || !part_;
    if (reading_ || (granted_ == 0 && !draining)) return;
    if (!draining) --granted_;
    reading_ = true;
    StartRead(&chunk_);
  }
  void Post(std::function<void()> task) {
    // The loop must be the last to hold the call, and with it the channel.
    (void)loop_.Post([self = shared_from_this(), task = std::move(task)] { task(); });
  }

  ControlLoop& loop_;
  const std::shared_ptr<Stubs> stubs_;
  Part part_;  // empty: cancelled
  grpc::ClientContext context_;
  gateway::v1::CaptureRequest request_;
  gateway::v1::CaptureChunk chunk_;
  uint32_t granted_ = 0;
  bool reading_ = false;
  bool told_end_ = false;
  std::shared_ptr<Capture> self_;
};

GatewayClient::~GatewayClient() {
  stubs_->closed = true;
  CancelAll();
  if (stubs_->held == nullptr) return;
  stubs_->held->context.TryCancel();
  stubs_->held->ended.get_future().wait();
}

void GatewayClient::Grant(uint64_t question, uint32_t parts) {
  const auto at = captures_.find(question);
  if (at != captures_.end()) at->second->Grant(parts);
}

void GatewayClient::Cancel(uint64_t question) {
  const auto at = captures_.find(question);
  if (at == captures_.end()) return;
  at->second->Cancel();
  captures_.erase(at);
}

void GatewayClient::CancelAll() {
  for (const auto& [question, capture] : captures_) capture->Cancel();
  captures_.clear();
}

namespace {

// Starts a call, and passes its result to `done` on the loop.
template <typename Response, typename Request, typename Stubs, typename Start, typename Done>
void Run(ControlLoop& loop, const std::shared_ptr<Stubs>& stubs, Request request,
         std::chrono::system_clock::time_point deadline, const Start& start, Done done) {
  StartUnary<Response>(loop, stubs, std::move(request), deadline, start,
                       [stubs = std::weak_ptr<Stubs>(stubs), done = std::move(done)](
                           const grpc::Status& status, Response& response) {
                         const auto known = stubs.lock();
                         if (known != nullptr && !known->closed) done(status, response);
                       });
}

fleet::v1::Heartbeat HeartbeatOf(const types::v1::GatewayStatus& status) {
  fleet::v1::Heartbeat heartbeat;
  heartbeat.set_gateway_version(status.version());
  for (const types::v1::Port& port : status.ports()) {
    for (const std::string& address : port.addresses()) {
      if (!address.empty()) heartbeat.add_addresses(address);
    }
  }
  *heartbeat.mutable_totals() = status.totals();
  *heartbeat.mutable_capacity() = status.capacity();
  *heartbeat.mutable_pools() = status.pools();
  if (status.has_drain()) *heartbeat.mutable_drain() = status.drain();
  if (status.has_take_overs()) {
    types::v1::TakeOverSummary& summary = *heartbeat.mutable_take_overs();
    const types::v1::TakeOvers& take_overs = status.take_overs();
    summary.set_count(take_overs.count());
    if (take_overs.has_last_blackout())
      *summary.mutable_last_blackout() = take_overs.last_blackout();
    if (take_overs.has_last_time()) *summary.mutable_last_time() = take_overs.last_time();
    summary.set_from_version(take_overs.from_version());
    *summary.mutable_refusals() = take_overs.refusals();
  }
  return heartbeat;
}

}  // namespace

void GatewayClient::Probe(std::function<void(StatusOr<GatewayProbe>)> done) {
  Run<types::v1::GatewayStatus>(
      loop_, stubs_, gateway::v1::GetStatusRequest(), In(kProbeDeadline),
      [this](auto... call) { stubs_->state->async()->GetStatus(call...); },
      [done = std::move(done)](const grpc::Status& status,
                               const types::v1::GatewayStatus& response) {
        if (!status.ok()) return done(ErrorOf(status));
        done(GatewayProbe{TimeUtil::TimestampToNanoseconds(response.start_time()),
                          HeartbeatOf(response)});
      });
}

void GatewayClient::GetConfig(std::function<void(StatusOr<gateway::v1::GetConfigResponse>)> done) {
  Run<gateway::v1::GetConfigResponse>(
      loop_, stubs_, gateway::v1::GetConfigRequest(), In(kProbeDeadline),
      [this](auto... call) { stubs_->config->async()->GetConfig(call...); },
      [done = std::move(done)](const grpc::Status& status,
                               const gateway::v1::GetConfigResponse& response) {
        if (!status.ok()) return done(ErrorOf(status));
        done(response);
      });
}

void GatewayClient::Apply(const types::v1::Push& push,
                          std::function<void(StatusOr<types::v1::PushReport>)> done) {
  auto parts = std::make_shared<std::vector<types::v1::Push>>(model::InParts(push));
  ApplyPart(parts, 0, std::move(done));
}

// Applies parts one after the other: only the last one's answer counts.
void GatewayClient::ApplyPart(const std::shared_ptr<std::vector<types::v1::Push>>& parts, size_t at,
                              std::function<void(StatusOr<types::v1::PushReport>)> done) {
  gateway::v1::ApplyRequest request;
  request.mutable_push()->Swap(&(*parts)[at]);
  Run<gateway::v1::ApplyResponse>(
      loop_, stubs_, std::move(request), In(kApplyDeadline),
      [this](auto... call) { stubs_->config->async()->Apply(call...); },
      [this, parts, at, done = std::move(done)](const grpc::Status& status,
                                                const gateway::v1::ApplyResponse& response) {
        if (!status.ok()) return done(ErrorOf(status));
        if (at + 1 == parts->size()) return done(response.report());
        ApplyPart(parts, at + 1, done);
      });
}

void GatewayClient::Ask(const fleet::v1::TunnelQuestion& question,
                        std::function<void(fleet::v1::TunnelAnswer)> done) {
  const auto deadline = std::chrono::system_clock::time_point(
      std::chrono::nanoseconds(TimeUtil::TimestampToNanoseconds(question.deadline())));
  using fleet::v1::TunnelAnswer;
  if (question.has_capture()) {
    const auto part = [this, id = question.id(), done = std::move(done)](TunnelAnswer piece) {
      if (!piece.more()) captures_.erase(id);
      done(std::move(piece));
    };
    const auto capture = std::make_shared<Capture>(loop_, stubs_, part);
    captures_[question.id()] = capture;
    return capture->Start(question.capture(), deadline);
  }
  const tunnel::TunnelCall* const call = tunnel::CallOf(question);
  if (call == nullptr) {
    TunnelAnswer unknown;
    unknown.set_code(grpc::StatusCode::UNIMPLEMENTED);
    unknown.set_message("this agent is older than the question");
    return done(std::move(unknown));
  }
  Run<grpc::ByteBuffer>(
      loop_, stubs_, BytesOf(call->RequestIn(question)), deadline,
      [this, call](grpc::ClientContext* context, const grpc::ByteBuffer* request,
                   grpc::ByteBuffer* response, auto end) {
        stubs_->any.UnaryCall(context, call->Path(), {}, request, response, std::move(end));
      },
      [call, done = std::move(done)](const grpc::Status& status, grpc::ByteBuffer& response) {
        TunnelAnswer answer;
        answer.set_code(status.error_code());
        answer.set_message(status.error_message());
        if (status.ok() && !Parse(response, call->ResponseIn(answer))) {
          answer.clear_answer();
          answer.set_code(grpc::StatusCode::INTERNAL);
          answer.set_message("the gateway's answer cannot be read");
        }
        done(std::move(answer));
      });
}

void GatewayClient::ListHeldAttaches(
    uint64_t after, std::function<void(StatusOr<gateway::v1::ListHeldAttachesResponse>)> done) {
  auto call = std::make_shared<HeldCall>();
  call->request.set_after(after);
  call->request.mutable_wait()->set_seconds(kHeldWaitSeconds);
  call->context.set_deadline(In(kHeldDeadline));
  stubs_->held = call;
  // No thread of gRPC may be the last to hold the channel, so its callback does not hold it.
  stubs_->identity->async()->ListHeldAttaches(
      &call->context, &call->request, &call->response,
      [&loop = loop_, stubs = std::weak_ptr<Stubs>(stubs_), call,
       done = std::move(done)](const grpc::Status& status) {
        (void)loop.Post([stubs, call, status, done] {
          const auto known = stubs.lock();
          if (known == nullptr || known->closed) return;
          known->held.reset();
          if (!status.ok()) return done(ErrorOf(status));
          done(call->response);
        });
        call->ended.set_value();
      });
}

void GatewayClient::TakeOver(uint64_t take_overs, Duration limit,
                             std::function<void(const TakeOverAnswer&)> done) {
  gateway::v1::TakeOverRequest request;
  request.set_take_overs(take_overs);
  const auto deadline = std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::system_clock::duration>(
                            std::chrono::nanoseconds(std::min(limit, kLongestTakeOver).ns));
  Run<gateway::v1::TakeOverResponse>(
      loop_, stubs_, std::move(request), deadline,
      [this](auto... call) { stubs_->take_overs->async()->TakeOver(call...); },
      [done = std::move(done)](const grpc::Status& status,
                               const gateway::v1::TakeOverResponse& response) {
        done({status.error_code(), status.error_message(), response});
      });
}

void GatewayClient::ClearSocket(const std::string& socket, bool expect_program,
                                std::function<void(StatusOr<uint32_t>)> done) {
  gateway::v1::ClearSocketRequest request;
  request.set_socket(socket);
  request.set_expect_program(expect_program);
  Run<gateway::v1::ClearSocketResponse>(
      loop_, stubs_, std::move(request), In(kProbeDeadline),
      [this](auto... call) { stubs_->identity->async()->ClearSocket(call...); },
      [done = std::move(done)](const grpc::Status& status,
                               const gateway::v1::ClearSocketResponse& response) {
        if (!status.ok()) return done(ErrorOf(status));
        done(response.remaining());
      });
}

void GatewayClient::AnswerAttach(uint64_t id, bool allowed, const std::string& reason,
                                 const gateway::v1::SlotLimits& limits) {
  gateway::v1::AnswerAttachRequest request;
  request.set_id(id);
  request.set_allowed(allowed);
  request.set_reason(reason);
  *request.mutable_limits() = limits;
  Run<gateway::v1::AnswerAttachResponse>(
      loop_, stubs_, std::move(request), In(kProbeDeadline),
      [this](auto... call) { stubs_->identity->async()->AnswerAttach(call...); },
      [](const grpc::Status&, const gateway::v1::AnswerAttachResponse&) {});
}

}  // namespace rocegw::agent
