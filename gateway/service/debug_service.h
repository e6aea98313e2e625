// SPDX-License-Identifier: Apache-2.0
// gateway.v1.DebugService on the callback API: explanations from the state source, captures as
// streams. Only the capture's own thread waits for its reader. Included by grpc_server.cc only:
// gRPC headers are heavy.
#pragma once

#include "gateway/service/identity.h"
#include "gateway/service/sources/capture_source.h"
#include "gateway/service/sources/config_source.h"
#include "gateway/service/sources/diagnosis_source.h"
#include "gateway/service/sources/state_source.h"
#include "rocegw/gateway/v1/debug.grpc.pb.h"

namespace rocegw::service {

class DebugService final : public gateway::v1::DebugService::CallbackService {
 public:
  // All arguments outlive the service. `diagnoses` may be nullptr.
  DebugService(const GatewayIdentity& identity, const Readiness& readiness, StateSource& state,
               ConfigSource& config, CaptureSource& captures, DiagnosisSource* diagnoses)
      : identity_(identity),
        readiness_(readiness),
        state_(state),
        config_(config),
        captures_(captures),
        diagnoses_(diagnoses) {}

  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context,
                                    const gateway::v1::ExplainRequest* request,
                                    gateway::v1::ExplainResponse* response) override;
  grpc::ServerUnaryReactor* Diagnose(grpc::CallbackServerContext* context,
                                     const gateway::v1::DiagnoseRequest* request,
                                     gateway::v1::DiagnoseResponse* response) override;
  grpc::ServerWriteReactor<gateway::v1::CaptureChunk>* Capture(
      grpc::CallbackServerContext* context, const gateway::v1::CaptureRequest* request) override;

 private:
  const GatewayIdentity& identity_;
  const Readiness& readiness_;
  StateSource& state_;
  ConfigSource& config_;
  CaptureSource& captures_;
  DiagnosisSource* const diagnoses_;  // nullptr: not available
};

}  // namespace rocegw::service
