// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/nodes/node_streams.h"

#include <grpcpp/alarm.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "controlplane/api/calls/peer_certificate.h"
#include "controlplane/api/nodes/heartbeat_pace.h"
#include "controlplane/api/nodes/outbox.h"
#include "controlplane/identity/certificate.h"

namespace rocegw::api {

grpc::Status StatusOf(sync::StreamEnd why) {
  switch (why) {
    case sync::StreamEnd::kSuperseded:
      return ToStatus({grpc::StatusCode::ABORTED,
                       "SUPERSEDED",
                       "another stream of this node has begun",
                       {},
                       {}});
    case sync::StreamEnd::kRevoked:
      return ToStatus({grpc::StatusCode::UNAUTHENTICATED,
                       "REVOKED",
                       "this node's certificate was revoked; it must join anew",
                       {},
                       {}});
    case sync::StreamEnd::kProtocol:
      return ToStatus({grpc::StatusCode::INVALID_ARGUMENT,
                       "UNEXPECTED_MESSAGE",
                       "a report must answer the newest push, and a hello comes once",
                       {},
                       {}});
    case sync::StreamEnd::kClosing:
      break;
  }
  return ToStatus(
      {grpc::StatusCode::UNAVAILABLE, "CONTROLLER_CLOSING", "the controller ends", {}, {}});
}

namespace {

using SyncOutbox = Outbox<fleet::v1::SyncRequest, fleet::v1::SyncResponse>;
using TunnelOutbox = Outbox<fleet::v1::TunnelAnswer, fleet::v1::TunnelQuestion>;

using identity::Revocations;

// Returns the expiry of the call's certificate in seconds since 1970; 0: unknown.
int64_t ExpiryOf(const grpc::AuthContext& auth) {
  const auto facts = identity::FactsOfPem(Property(auth, "x509_pem_cert"));
  if (!facts.ok()) return 0;
  return std::chrono::duration_cast<std::chrono::seconds>(
             facts.value().not_after.time_since_epoch())
      .count();
}

// Ends the stream when its node's certificate becomes invalid.
template <typename Outbox>
std::unique_ptr<Revocations::Listening> EndWhenRevoked(const grpc::AuthContext& auth,
                                                       Revocations& revocations,
                                                       const std::shared_ptr<Outbox>& outbox) {
  auto certificate = CertificateOf(auth);
  if (!certificate.has_value()) return nullptr;
  return revocations.Listen(std::move(*certificate),
                            [outbox] { outbox->Finish(StatusOf(sync::StreamEnd::kRevoked)); });
}

class SyncLink final : public sync::NodeStream {
 public:
  explicit SyncLink(std::shared_ptr<SyncOutbox> outbox) : outbox_(std::move(outbox)) {}
  void Send(const fleet::v1::SyncResponse& message) override { outbox_->Send(message); }
  void Close(sync::StreamEnd why) override { outbox_->Finish(StatusOf(why)); }

 private:
  const std::shared_ptr<SyncOutbox> outbox_;
};

class TunnelLink final : public sync::TunnelStream {
 public:
  explicit TunnelLink(std::shared_ptr<TunnelOutbox> outbox) : outbox_(std::move(outbox)) {}
  void Send(const fleet::v1::TunnelQuestion& question) override { outbox_->Send(question); }
  void Close(sync::StreamEnd why) override { outbox_->Finish(StatusOf(why)); }

 private:
  const std::shared_ptr<TunnelOutbox> outbox_;
};

// Holds itself until gRPC is done with it; answers of the store may arrive later.
class SyncStream final
    : public grpc::ServerBidiReactor<fleet::v1::SyncRequest, fleet::v1::SyncResponse>,
      public std::enable_shared_from_this<SyncStream> {
 public:
  SyncStream(grpc::CallbackServerContext* context, const NodeStreams& streams)
      : context_(context), streams_(streams) {}

  void Start() {
    self_ = shared_from_this();
    outbox_->Read(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return outbox_->Finish(grpc::Status::OK);
    if (gateway_.empty()) return Begin();
    if (request_.has_report()) {
      streams_.hub.OnReport(gateway_, id_, request_.report());
    } else if (request_.has_heartbeat()) {
      streams_.hub.OnHeartbeat(gateway_, id_, request_.heartbeat());
      const auto pause = pace_.Take(HeartbeatPace::Clock::now(), request_.ByteSizeLong());
      if (pause != HeartbeatPace::Clock::duration(0)) return ReadAfter(pause);
    } else {
      return outbox_->Finish(StatusOf(sync::StreamEnd::kProtocol));
    }
    outbox_->Read(&request_);
  }
  void OnWriteDone(bool ok) override { outbox_->OnWriteDone(ok); }
  void OnCancel() override { outbox_->Finish(grpc::Status::CANCELLED); }
  void OnDone() override {
    const auto self = std::move(self_);
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    if (id_ != 0) streams_.hub.Detach(gateway_, id_);
  }

 private:
  void ReadAfter(HeartbeatPace::Clock::duration pause) {
    alarm_.Set(std::chrono::system_clock::now() + pause,
               [self = shared_from_this()](bool) { self->outbox_->Read(&self->request_); });
  }

  void Begin() {
    Admitted admitted;
    if (auto error =
            Admit(*context_, CallKind::kStream, request_, streams_.backend.follower, admitted)) {
      return outbox_->Finish(ToStatus(*error));
    }
    if (!request_.has_hello()) return outbox_->Finish(StatusOf(sync::StreamEnd::kProtocol));
    gateway_ = request_.hello().gateway();
    // The first stream of a node creates its gateway's object if necessary.
    Call call{.principal = admitted.principal,
              .peer = admitted.peer,
              .method = admitted.method,
              .request_id = {},
              .request_digest = {},
              .request_json = {},
              .etag_before = {}};
    const auto plan = [name = gateway_,
                       birth = NewBirth()](const sync::Fleet& fleet) -> PlanOrError {
      types::v1::Gateway gateway;
      gateway.set_name(name);
      return PlanCreate(fleet, gateway, birth);
    };
    const bool known = streams_.backend.follower.Read(
        [&](const sync::Fleet& fleet) { return fleet.view.gateways.contains(gateway_); });
    if (known) return CatchUp();
    streams_.backend.writer.Write(
        std::move(call), 0, plan, [self = shared_from_this()](const WrittenOrError& written) {
          const auto* const error = std::get_if<ApiError>(&written);
          if (error != nullptr && error->code != grpc::StatusCode::ALREADY_EXISTS)
            return self->outbox_->Finish(ToStatus(*error));
          self->CatchUp();
        });
  }

  // Another controller may have sent the node newer changes than this one has seen; the node would
  // take the older state for a store with a lost past (UNADOPTED).
  void CatchUp() {
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
    }
    streams_.backend.follower.WhenNewest(
        [self = shared_from_this()](const StatusOr<store::Revision>& newest) {
          if (!newest.ok()) return self->outbox_->Finish(ToStatus(FromStore(newest.status())));
          self->Attach();
        });
  }

  void Attach() {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    const auto auth = context_->auth_context();
    // Tells the agent that it is connected: the first push may come much later.
    outbox_->SendInitialMetadata();
    id_ =
        streams_.hub.Attach(request_.hello(), std::make_shared<SyncLink>(outbox_), ExpiryOf(*auth));
    revocation_ = EndWhenRevoked(*auth, streams_.revocations, outbox_);
    outbox_->Read(&request_);
  }

  grpc::CallbackServerContext* const context_;  // valid until over_
  const NodeStreams& streams_;                  // valid until over_
  const std::shared_ptr<SyncOutbox> outbox_ = std::make_shared<SyncOutbox>(*this);
  std::shared_ptr<SyncStream> self_;  // held until gRPC is done
  fleet::v1::SyncRequest request_;
  std::string gateway_;  // empty before the first message
  HeartbeatPace pace_;
  grpc::Alarm alarm_;
  std::mutex mutex_;  // guards the fields below; taken before the locks of follower and hub
  bool over_ = false;
  sync::NodeHub::StreamId id_ = 0;
  std::unique_ptr<Revocations::Listening> revocation_;
};

class TunnelStream final
    : public grpc::ServerBidiReactor<fleet::v1::TunnelAnswer, fleet::v1::TunnelQuestion> {
 public:
  TunnelStream(grpc::CallbackServerContext* context, const NodeStreams& streams)
      : context_(context), streams_(streams) {
    outbox_->Read(&answer_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return outbox_->Finish(grpc::Status::OK);
    if (gateway_.empty()) {
      Admitted admitted;
      if (auto error =
              Admit(*context_, CallKind::kStream, answer_, streams_.backend.follower, admitted)) {
        return outbox_->Finish(ToStatus(*error));
      }
      gateway_ = answer_.gateway();
      id_ = streams_.tunnels.Attach(gateway_, std::make_shared<TunnelLink>(outbox_));
      revocation_ = EndWhenRevoked(*context_->auth_context(), streams_.revocations, outbox_);
    } else {
      streams_.tunnels.OnAnswer(gateway_, id_, answer_);
    }
    outbox_->Read(&answer_);
  }
  void OnWriteDone(bool ok) override { outbox_->OnWriteDone(ok); }
  void OnCancel() override { outbox_->Finish(grpc::Status::CANCELLED); }
  void OnDone() override {
    if (id_ != 0) streams_.tunnels.Detach(gateway_, id_);
    delete this;
  }

 private:
  grpc::CallbackServerContext* const context_;
  const NodeStreams& streams_;
  const std::shared_ptr<TunnelOutbox> outbox_ = std::make_shared<TunnelOutbox>(*this);
  fleet::v1::TunnelAnswer answer_;
  std::string gateway_;  // empty before the first message
  sync::TunnelHub::StreamId id_ = 0;
  std::unique_ptr<Revocations::Listening> revocation_;
};

}  // namespace

grpc::ServerBidiReactor<fleet::v1::SyncRequest, fleet::v1::SyncResponse>* NewSyncStream(
    grpc::CallbackServerContext* context, const NodeStreams& streams) {
  const auto stream = std::make_shared<SyncStream>(context, streams);
  stream->Start();
  return stream.get();
}

grpc::ServerBidiReactor<fleet::v1::TunnelAnswer, fleet::v1::TunnelQuestion>* NewTunnelStream(
    grpc::CallbackServerContext* context, const NodeStreams& streams) {
  return new TunnelStream(context, streams);
}

}  // namespace rocegw::api
