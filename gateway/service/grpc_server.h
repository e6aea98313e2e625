// SPDX-License-Identifier: Apache-2.0
// gRPC services of the daemon on a unix socket: state, configuration, health (grpc.health.v1) and
// reflection. The socket's mode and owner decide on access. A thread accepts connections and gives
// them to gRPC, which runs its own threads. Main thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "gateway/base/inherited_fds.h"
#include "gateway/base/status.h"
#include "gateway/service/identity.h"
#include "gateway/service/sources/attach_source.h"
#include "gateway/service/sources/capture_source.h"
#include "gateway/service/sources/config_source.h"
#include "gateway/service/sources/diagnosis_source.h"
#include "gateway/service/sources/state_source.h"
#include "gateway/service/sources/take_over_source.h"

namespace rocegw::service {

struct SocketPlace {
  std::string path;
  uint32_t mode = 0600;
  uid_t uid = static_cast<uid_t>(-1);  // -1: unchanged
  gid_t gid = static_cast<gid_t>(-1);
};

class GrpcServer {
 public:
  // All arguments outlive the server. Each nullptr removes functions: without `config` the
  // configuration cannot be changed, without `attaches` identities cannot be confirmed, without
  // `config` or `captures` there is no debug service, without `diagnoses` no diagnosis, without
  // `take_overs` the daemon cannot be replaced by a call.
  GrpcServer(const GatewayIdentity& identity, const Readiness& readiness, StateSource& source,
             ConfigSource* config = nullptr, AttachSource* attaches = nullptr,
             CaptureSource* captures = nullptr, DiagnosisSource* diagnoses = nullptr,
             TakeOverSource* take_overs = nullptr);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // Starts the server. Replaces a socket file without a server; a served one is an error.
  // `inherited`: may have the socket of another process; nullptr: none.
  Status Start(const SocketPlace& place, InheritedFds* inherited = nullptr);
  // Accepts no connections, which wait in the socket, or accepts them again. Also before Start.
  void SetAccepting(bool accepting);
  // Adds the listening socket to what another process may inherit.
  void Offer(OfferedFds& fds) const;
  // Sets the answer of the health service.
  void SetServing(bool serving);
  // Ends calls in progress after a moment and removes the socket.
  void Stop();
  // The same for a server whose socket another process has: the socket stays.
  void Leave();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rocegw::service
