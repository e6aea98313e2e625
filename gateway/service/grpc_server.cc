// SPDX-License-Identifier: Apache-2.0
#include "gateway/service/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "gateway/service/state_service.h"

namespace rocegw::service {
namespace {

constexpr std::chrono::milliseconds kStopGrace(500);

std::string Explain(const std::string& path, const char* what, int error) {
  std::string text = "gRPC socket " + path + ": " + what + ": " + std::strerror(error);
  if (error == EACCES || error == EPERM || error == EROFS) {
    text += "; run as a user that may write there, or set runtime_dir or grpc_socket.path";
  } else if (error == ENOENT) {
    text += "; create the directory, or set runtime_dir or grpc_socket.path";
  }
  return text;
}

// gRPC tells nothing about why it could not listen, and takes over a socket that another process
// serves. So the place is tried out first.
Status ClaimSocket(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path)
    return {ENAMETOOLONG, Explain(path, "bind", ENAMETOOLONG)};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {errno, Explain(path, "socket", errno)};
  const auto* place = reinterpret_cast<const sockaddr*>(&address);
  Status status;
  struct stat info {};
  if (connect(fd, place, sizeof address) == 0) {
    status = {EADDRINUSE, "gRPC socket " + path +
                              ": another process serves it; stop that one, or set runtime_dir or "
                              "grpc_socket.path"};
  } else if (lstat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
    status = {EEXIST, "gRPC socket " + path +
                          ": there is a file that is not a socket; remove it, "
                          "or set grpc_socket.path"};
  } else if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    status = {errno, Explain(path, "remove the old one", errno)};
  } else if (bind(fd, place, sizeof address) != 0) {
    status = {errno, Explain(path, "bind", errno)};
  } else {
    unlink(path.c_str());
  }
  close(fd);
  return status;
}

}  // namespace

struct GrpcServer::Parts {
  Parts(const GatewayIdentity& identity, const Readiness& readiness, StateSource& source)
      : state(identity, readiness, source) {}
  StateService state;
  std::string path;
  std::unique_ptr<grpc::Server> server;
};

GrpcServer::GrpcServer(const GatewayIdentity& identity, const Readiness& readiness,
                       StateSource& source)
    : parts_(std::make_unique<Parts>(identity, readiness, source)) {}

GrpcServer::~GrpcServer() { Stop(); }

Status GrpcServer::Start(const SocketPlace& place) {
  if (Status status = ClaimSocket(place.path); !status.ok()) return status;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + place.path, grpc::InsecureServerCredentials());
  builder.RegisterService(&parts_->state);
  // Nobody but us may connect before mode and owner are set.
  const mode_t old_mask = umask(0177);
  parts_->server = builder.BuildAndStart();
  umask(old_mask);
  if (parts_->server == nullptr) {
    return {EIO, "gRPC socket " + place.path + ": gRPC could not start there"};
  }
  parts_->path = place.path;
  if (chown(place.path.c_str(), place.uid, place.gid) != 0 ||
      chmod(place.path.c_str(), place.mode) != 0) {
    const int error = errno;
    Stop();
    return {error, Explain(place.path, "set owner and mode", error)};
  }
  return OkStatus();
}

void GrpcServer::SetServing(bool serving) {
  if (parts_->server != nullptr) parts_->server->GetHealthCheckService()->SetServingStatus(serving);
}

void GrpcServer::Stop() {
  if (parts_->server == nullptr) return;
  parts_->server->Shutdown(std::chrono::system_clock::now() + kStopGrace);
  parts_->server->Wait();
  parts_->server.reset();
  unlink(parts_->path.c_str());
}

}  // namespace rocegw::service
