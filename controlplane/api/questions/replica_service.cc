// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/questions/replica_service.h"

#include <memory>
#include <mutex>
#include <string>

#include "controlplane/api/calls/admission.h"
#include "controlplane/api/calls/unary_call.h"
#include "controlplane/api/nodes/outbox.h"
#include "controlplane/api/nodes/sent_progress.h"

namespace rocegw::api {
namespace {

using fleet::v1::ForwardRequest;
using fleet::v1::TunnelAnswer;
using AnswerOutbox = Outbox<ForwardRequest, TunnelAnswer>;

grpc::Status StatusFrom(const sync::TunnelResult& result) {
  return {static_cast<grpc::StatusCode>(result.code), result.message};
}

class ForwardStream final : public grpc::ServerBidiReactor<ForwardRequest, TunnelAnswer> {
 public:
  ForwardStream(grpc::CallbackServerContext* context, const sync::FleetFollower& follower,
                sync::TunnelHub& tunnels)
      : context_(context), follower_(follower), tunnels_(tunnels) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      // Questions in progress are answered even if nothing more is granted.
      if (!begun_) outbox_->Finish(grpc::Status::CANCELLED);
      return;
    }
    if (!begun_) {
      Admitted admitted;
      if (auto error = Admit(*context_, CallKind::kStream, request_, follower_, admitted))
        return outbox_->Finish(ToStatus(*error));
      begun_ = true;
      Begin();
    } else if (id_ != 0) {
      tunnels_.Grant(id_, request_.grant());
    }
    StartRead(&request_);
  }
  void OnWriteDone(bool ok) override { outbox_->OnWriteDone(ok); }
  void OnCancel() override { outbox_->Finish(grpc::Status::CANCELLED); }
  void OnDone() override {
    if (id_ != 0) tunnels_.Cancel(id_);
    delete this;
  }

 private:
  void Begin() {
    // Only questions with an open end are cancelled.
    if (!request_.question().has_capture() && !request_.question().has_probe()) {
      return tunnels_.Ask(request_.gateway(), request_.question(), context_->deadline(),
                          [outbox = outbox_](const sync::TunnelResult& result) {
                            for (const TunnelAnswer& part : result.parts) outbox->Send(part);
                            outbox->FinishAfterAll(StatusFrom(result));
                          });
    }
    id_ = tunnels_.AskInParts(
        request_.gateway(), request_.question(), context_->deadline(), request_.grant(),
        [outbox = outbox_](const TunnelAnswer& part) { outbox->Send(part); },
        [outbox = outbox_](const sync::TunnelResult& result) {
          outbox->FinishAfterAll(StatusFrom(result));
        });
  }

  grpc::CallbackServerContext* const context_;
  const sync::FleetFollower& follower_;
  sync::TunnelHub& tunnels_;
  const std::shared_ptr<AnswerOutbox> outbox_ = std::make_shared<AnswerOutbox>(*this);
  ForwardRequest request_;
  bool begun_ = false;                  // reads are sequential
  sync::TunnelHub::QuestionId id_ = 0;  // question with an answer in parts
};

}  // namespace

grpc::ServerBidiReactor<ForwardRequest, TunnelAnswer>* ReplicaService::Forward(
    grpc::CallbackServerContext* context) {
  return new ForwardStream(context, follower_, tunnels_);
}

grpc::ServerUnaryReactor* ReplicaService::GetProgress(
    grpc::CallbackServerContext* context, const fleet::v1::ReplicaProgressRequest* request,
    fleet::v1::ReplicaProgress* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    AwaitSent(follower_, hub_, request->revision(), *reactor,
              [reactor, response](const sync::FleetProgress& progress) {
                response->set_connected(progress.connected);
                response->set_in_sync(progress.in_sync);
                response->set_unadopted(progress.unadopted);
                response->set_rejecting(progress.rejecting);
                reactor->Finish(grpc::Status::OK);
              });
  };
  return WhenAdmitted(*context, *request, follower_, serve);
}

grpc::ServerUnaryReactor* ReplicaService::Adopt(grpc::CallbackServerContext* context,
                                                const fleet::v1::ReplicaAdoptRequest* request,
                                                fleet::v1::ReplicaAdopted* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    response->set_gateways(hub_.Adopt(request->gateway()));
    reactor->Finish(grpc::Status::OK);
  };
  return WhenAdmitted(*context, *request, follower_, serve);
}

}  // namespace rocegw::api
