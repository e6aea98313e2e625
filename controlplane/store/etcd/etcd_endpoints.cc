// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/etcd/etcd_endpoints.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace rocegw::store {
namespace {

bool Says(const grpc::Status& status, std::string_view text) {
  return status.error_message().find(text) != std::string::npos;
}

Status ReadInto(const std::string& file, std::string* text) {
  if (file.empty()) return OkStatus();
  std::ifstream stream(file);
  text->assign(std::istreambuf_iterator<char>(stream), {});
  if (stream && !text->empty()) return OkStatus();
  return {ENOENT, "cannot read " + file};
}

StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(const EtcdOptions& options) {
  if (options.ca_file.empty() && options.certificate_file.empty() && options.key_file.empty()) {
    return grpc::InsecureChannelCredentials();
  }
  grpc::SslCredentialsOptions tls;
  Status status = ReadInto(options.ca_file, &tls.pem_root_certs);
  if (status.ok()) status = ReadInto(options.certificate_file, &tls.pem_cert_chain);
  if (status.ok()) status = ReadInto(options.key_file, &tls.pem_private_key);
  if (!status.ok()) return status;
  return grpc::SslCredentials(tls);
}

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // A stopped member keeps its connection open and is only noticed by its silence. etcd requires 5
  // s between pings.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 6000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return arguments;
}

}  // namespace

StatusOr<std::unique_ptr<EtcdEndpoints>> EtcdEndpoints::Make(const EtcdOptions& options) {
  if (options.endpoints.empty()) return Status(kInvalid, "no endpoint of etcd is given");
  auto credentials = Credentials(options);
  if (!credentials.ok()) return credentials.status();
  auto endpoints = std::make_unique<EtcdEndpoints>();
  for (const std::string& address : options.endpoints) {
    Member member;
    member.address = address;
    member.channel = grpc::CreateCustomChannel(address, *credentials, Arguments());
    member.kv = etcdserverpb::KV::NewStub(member.channel);
    member.watch = etcdserverpb::Watch::NewStub(member.channel);
    member.lease = etcdserverpb::Lease::NewStub(member.channel);
    endpoints->members_.push_back(std::move(member));
  }
  return endpoints;
}

void EtcdEndpoints::Failed(size_t index) {
  size_t now = current_;
  if (now % members_.size() == index) current_.compare_exchange_strong(now, now + 1);
}

void RequireLeader(grpc::ClientContext& context) { context.AddMetadata("hasleader", "true"); }

bool SurelyNotDone(const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return false;
  return Says(status, "failed to connect") || Says(status, "connections to all backends failing") ||
         Says(status, "etcdserver: no leader");
}

bool WorthAnotherTry(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
}

Status FromGrpc(const grpc::Status& status, bool may_be_done) {
  if (status.ok()) return OkStatus();
  const std::string text = "etcd: " + status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return {kInvalid, text};
    case grpc::StatusCode::NOT_FOUND:
      return {kLeaseGone, text};
    case grpc::StatusCode::OUT_OF_RANGE:
      return {Says(status, "future") ? kFutureRevision : kCompacted, text};
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return {Says(status, "space") ? kFull : kUnavailable, text};
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
      return {EACCES, text};
    default:
      return {may_be_done && !SurelyNotDone(status) ? kOutcomeUnknown : kUnavailable, text};
  }
}

}  // namespace rocegw::store
