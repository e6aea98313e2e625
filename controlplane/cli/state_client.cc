// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/state_client.h"

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "rocegw/gateway/v1/state.grpc.pb.h"

namespace rocegw::cli {
namespace {

constexpr int32_t kPageSize = 1000;

ExitCode CodeOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
      return kOk;
    case grpc::StatusCode::NOT_FOUND:
      return kNotFound;
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::ABORTED:
      return kConflict;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return kDenied;
    case grpc::StatusCode::UNAVAILABLE:
      return kUnavailable;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return kDeadline;
    default:
      return kFailed;
  }
}

}  // namespace

struct StateClient::Channel {
  std::unique_ptr<gateway::v1::StateService::Stub> stub;
  std::string socket;
  std::chrono::milliseconds timeout;

  template <typename Request, typename Response>
  CallResult Call(grpc::Status (gateway::v1::StateService::Stub::*method)(grpc::ClientContext*,
                                                                          const Request&,
                                                                          Response*),
                  const Request& request, Response& response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    const grpc::Status status = ((*stub).*method)(&context, request, &response);
    if (status.ok()) return {};
    const ExitCode code = CodeOf(status.error_code());
    if (code == kDeadline) {
      return {code, "the gateway at " + socket + " did not answer within " +
                        std::to_string(timeout.count()) + " ms (--timeout)"};
    }
    return {code, "the gateway at " + socket + " answered: " + status.error_message()};
  }

  // Reads page after page into `all`; move_rows appends the rows of one page.
  template <typename Request, typename Response, typename MoveRows>
  CallResult CallPaged(grpc::Status (gateway::v1::StateService::Stub::*method)(grpc::ClientContext*,
                                                                               const Request&,
                                                                               Response*),
                       Response& all, MoveRows move_rows) {
    Request request;
    request.set_page_size(kPageSize);
    do {
      Response page;
      CallResult result = Call(method, request, page);
      if (!result.ok()) return result;
      move_rows(page, all);
      *all.mutable_read_time() = page.read_time();
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return {};
  }
};

StateClient::StateClient(std::string socket, std::chrono::milliseconds timeout)
    : socket_(std::move(socket)), timeout_(timeout) {}

StateClient::~StateClient() = default;

CallResult StateClient::Connect() {
  sockaddr_un address{};
  if (socket_.empty() || socket_.size() >= sizeof address.sun_path) {
    return {kUsage, "--socket: a socket path has 1 to 107 bytes"};
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int rc =
      fd < 0 ? -1 : connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = rc == 0 ? 0 : errno;
  if (fd >= 0) close(fd);
  if (error == EACCES || error == EPERM) {
    return {kDenied, "no right to open " + socket_ +
                         "; run as the user that rocegwd runs as (often: with sudo)"};
  }
  if (error != 0) {
    return {kUnavailable, "no gateway at " + socket_ + " (" + std::strerror(error) +
                              "); is rocegwd running? --socket names another place"};
  }
  channel_ = std::make_unique<Channel>();
  channel_->stub = gateway::v1::StateService::NewStub(
      grpc::CreateChannel("unix:" + socket_, grpc::InsecureChannelCredentials()));
  channel_->socket = socket_;
  channel_->timeout = timeout_;
  return {};
}

CallResult StateClient::GetStatus(types::v1::GatewayStatus& out) {
  return channel_->Call(&gateway::v1::StateService::Stub::GetStatus,
                        gateway::v1::GetStatusRequest(), out);
}

CallResult StateClient::ListSessions(gateway::v1::ListSessionsResponse& out) {
  return channel_->CallPaged(
      &gateway::v1::StateService::Stub::ListSessions, out,
      [](auto& page, auto& all) { all.mutable_sessions()->MergeFrom(page.sessions()); });
}

CallResult StateClient::ListQps(gateway::v1::ListQpsResponse& out) {
  return channel_->CallPaged(
      &gateway::v1::StateService::Stub::ListQps, out,
      [](auto& page, auto& all) { all.mutable_qps()->MergeFrom(page.qps()); });
}

CallResult StateClient::ListMrs(gateway::v1::ListMrsResponse& out) {
  return channel_->CallPaged(
      &gateway::v1::StateService::Stub::ListMrs, out,
      [](auto& page, auto& all) { all.mutable_mrs()->MergeFrom(page.mrs()); });
}

CallResult StateClient::GetCounters(gateway::v1::GetCountersResponse& out) {
  return channel_->Call(&gateway::v1::StateService::Stub::GetCounters,
                        gateway::v1::GetCountersRequest(), out);
}

}  // namespace rocegw::cli
