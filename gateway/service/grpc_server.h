// SPDX-License-Identifier: Apache-2.0
// The daemon's gRPC services on a unix socket: state, configuration, health (grpc.health.v1) and
// reflection. Access is decided by the socket's mode and owner. Main thread; gRPC runs its own
// threads behind it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "gateway/base/status.h"
#include "gateway/service/attach_source.h"
#include "gateway/service/capture_source.h"
#include "gateway/service/config_source.h"
#include "gateway/service/diagnosis_source.h"
#include "gateway/service/identity.h"
#include "gateway/service/state_source.h"

namespace rocegw::service {

struct SocketPlace {
  std::string path;
  uint32_t mode = 0600;
  uid_t uid = static_cast<uid_t>(-1);  // -1: as it is
  gid_t gid = static_cast<gid_t>(-1);
};

class GrpcServer {
 public:
  // All live longer than the server. Without `config` the configuration cannot be changed, without
  // `attaches` nobody can be vouched for, without `config` or `captures` there is no debug service,
  // without `diagnoses` it does not diagnose.
  GrpcServer(const GatewayIdentity& identity, const Readiness& readiness, StateSource& source,
             ConfigSource* config = nullptr, AttachSource* attaches = nullptr,
             CaptureSource* captures = nullptr, DiagnosisSource* diagnoses = nullptr);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // A socket file that nobody serves is replaced; one that somebody serves is an error.
  Status Start(const SocketPlace& place);
  // What the health service tells.
  void SetServing(bool serving);
  // Ends calls in progress after a moment, removes the socket.
  void Stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rocegw::service
