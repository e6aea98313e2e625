// SPDX-License-Identifier: Apache-2.0
#include "gateway/service/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_posix.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>

#include "gateway/process/socket/unix_acceptor.h"
#include "gateway/process/socket/unix_socket.h"
#include "gateway/service/config_service.h"
#include "gateway/service/debug_service.h"
#include "gateway/service/identity_service.h"
#include "gateway/service/state_service.h"
#include "gateway/service/take_over_service.h"

namespace rocegw::service {
namespace {

constexpr std::chrono::milliseconds kStopGrace(500);
constexpr process::SocketWords kPlace = {"gRPC socket", "runtime_dir or grpc_socket.path"};

}  // namespace

struct GrpcServer::Parts {
  Parts(const GatewayIdentity& identity, const Readiness& readiness, StateSource& source,
        ConfigSource* config_source, AttachSource* attach_source, CaptureSource* captures,
        DiagnosisSource* diagnoses, TakeOverSource* take_over_source)
      : state(identity, readiness, source) {
    if (take_over_source != nullptr) take_overs.emplace(*take_over_source);
    if (attach_source != nullptr) attaches.emplace(*attach_source);
    if (config_source != nullptr) config.emplace(*config_source);
    if (config_source != nullptr && captures != nullptr)
      debug.emplace(identity, readiness, source, *config_source, *captures, diagnoses);
  }
  StateService state;
  std::optional<ConfigService> config;
  std::optional<IdentityService> attaches;
  std::optional<DebugService> debug;
  std::optional<TakeOverService> take_overs;
  std::string path;
  std::unique_ptr<grpc::Server> server;
  process::UnixAcceptor acceptor;
};

GrpcServer::GrpcServer(const GatewayIdentity& identity, const Readiness& readiness,
                       StateSource& source, ConfigSource* config, AttachSource* attaches,
                       CaptureSource* captures, DiagnosisSource* diagnoses,
                       TakeOverSource* take_overs)
    : parts_(std::make_unique<Parts>(identity, readiness, source, config, attaches, captures,
                                     diagnoses, take_overs)) {}

GrpcServer::~GrpcServer() { Stop(); }

Status GrpcServer::Start(const SocketPlace& place, InheritedFds* inherited) {
  UniqueFd listener;
  if (inherited != nullptr) listener = inherited->Take(FdKind::kGrpcListener, place.path);
  if (!listener.valid()) {
    auto opened = process::ListenOnUnixSocket(kPlace, place.path, place.mode, place.uid, place.gid);
    if (!opened.ok()) return opened.status();
    listener = std::move(*opened);
  } else if (chown(place.path.c_str(), place.uid, place.gid) != 0 ||
             chmod(place.path.c_str(), place.mode) != 0) {
    return {errno, process::ExplainSocket(kPlace, place.path, "set owner and mode", errno)};
  }
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.RegisterService(&parts_->state);
  if (parts_->config) builder.RegisterService(&*parts_->config);
  if (parts_->attaches) builder.RegisterService(&*parts_->attaches);
  if (parts_->debug) builder.RegisterService(&*parts_->debug);
  if (parts_->take_overs) builder.RegisterService(&*parts_->take_overs);
  parts_->server = builder.BuildAndStart();
  if (parts_->server == nullptr) {
    unlink(place.path.c_str());
    return {EIO, "gRPC socket " + place.path + ": gRPC could not start there"};
  }
  parts_->path = place.path;
  Status started = parts_->acceptor.Start(
      std::move(listener), "rocegw-grpc", [server = parts_->server.get()](UniqueFd connection) {
        grpc::AddInsecureChannelFromFd(server, connection.Release());
      });
  if (!started.ok()) Stop();
  return started;
}

void GrpcServer::SetAccepting(bool accepting) { parts_->acceptor.SetAccepting(accepting); }

void GrpcServer::Offer(OfferedFds& fds) const {
  if (parts_->server != nullptr)
    fds.push_back({FdKind::kGrpcListener, parts_->path, parts_->acceptor.fd()});
}

void GrpcServer::SetServing(bool serving) {
  if (parts_->server != nullptr) parts_->server->GetHealthCheckService()->SetServingStatus(serving);
}

void GrpcServer::Stop() {
  if (parts_->server == nullptr) return;
  Leave();
  unlink(parts_->path.c_str());
}

void GrpcServer::Leave() {
  parts_->acceptor.Stop();
  parts_->server->Shutdown(std::chrono::system_clock::now() + kStopGrace);
  parts_->server->Wait();
  parts_->server.reset();
}

}  // namespace rocegw::service
