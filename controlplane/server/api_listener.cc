// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/api_listener.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "controlplane/server/front/connection_guard.h"
#include "controlplane/server/front/member_notice.h"
#include "controlplane/server/keepalive.h"
#include "gateway/disk/scoped_umask.h"
#include "gateway/process/socket/unix_socket.h"

namespace rocegw::server {
namespace {

constexpr std::chrono::milliseconds kStopGrace(1000);
constexpr int kLeastPingMs = 10000;
constexpr int kHandshakeTimeoutMs = 10000;
constexpr int kMostStreams = 256;    // per connection
constexpr int kMostIdleMs = 600000;  // idle time of a connection without calls
constexpr int kMostThreads = 64;
// Bytes that gRPC reads at once: it makes the streams that they open before any of them is counted.
constexpr int kMostReadBytes = 16384;
constexpr process::SocketWords kAdminSocket = {"admin socket", "state_dir or admin_socket"};

void Bound(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMostIdleMs);
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMostReadBytes);
  // Synchronous services (reflection) use a thread per call.
  builder.SetResourceQuota(grpc::ResourceQuota("controller").SetMaxThreads(kMostThreads));
  // Detects vanished agents, and allows agents to check the connection.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kLeastPingMs);
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> ApiListener::Credentials() {
  grpc::experimental::TlsServerCredentialsOptions options(identity_.Certificates());
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  // Certificates are requested, and verified if given. The guard lists what needs none.
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  auto credentials = grpc::experimental::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(std::make_shared<ConnectionGuard>(
      *services_.revocations, identity_.authority().domain(), calls_,
      [this](const std::string& principal) { front_->Expel(principal); }));
  return credentials;
}

Status ApiListener::Start() {
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  front_ = std::make_unique<ConnectionFront>(LimitsFor(descriptors.rlim_cur));
  if (Status status = front_->Listen(config_.address); !status.ok()) return status;
  const std::string socket = config_.AdminSocket();
  if (Status status = process::ClaimSocket(kAdminSocket, socket); !status.ok()) return status;

  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  using Builder = grpc::ServerBuilder::experimental_type;
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      Builder::ExternalConnectionType::FROM_FD, Credentials());
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> notices;
  notices.push_back(std::make_unique<MemberNotice>(*front_, calls_));
  builder.experimental().SetInterceptorCreators(std::move(notices));
  builder.AddListeningPort("unix:" + socket, grpc::experimental::LocalServerCredentials(UDS));
  for (grpc::Service* const service : services_.services()) builder.RegisterService(service);
  Bound(builder);
  // Only this user may open the socket from the start.
  {
    const ScopedUmask mask(0177);
    server_ = builder.BuildAndStart();
  }
  if (server_ == nullptr) {
    front_.reset();
    return {EIO, "admin socket " + socket + ": gRPC could not start there"};
  }
  return front_->Start([this](int listener, int connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters accepted;
    accepted.listener_fd = listener;
    accepted.fd = connection;
    acceptor_->HandleNewConnection(&accepted);
  });
}

void ApiListener::Stop() {
  front_->Stop();
  server_->GetHealthCheckService()->Shutdown();
  services_.CloseStreams();
  server_->Shutdown(std::chrono::system_clock::now() + kStopGrace);
  server_->Wait();
  server_.reset();
  acceptor_.reset();
  unlink(config_.AdminSocket().c_str());
}

void ApiListener::SetServing(bool serving) {
  auto* const health = server_->GetHealthCheckService();
  health->SetServingStatus(serving);
  for (const char* const name : FleetServices::names()) health->SetServingStatus(name, serving);
}

}  // namespace rocegw::server
