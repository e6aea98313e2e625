// SPDX-License-Identifier: Apache-2.0
#include "agent/node/node_identity.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "controlplane/identity/openssl.h"
#include "gateway/base/service_advice.h"
#include "gateway/disk/durable_file.h"
#include "rocegw/fleet/v1/node.grpc.pb.h"

namespace rocegw::agent {
namespace {

constexpr char kKey[] = "node.key";
constexpr char kJoiningKey[] = "joining.key";  // there while a join has not ended
constexpr char kCertificate[] = "node.crt";
constexpr char kAuthority[] = "ca.crt";
constexpr char kFleet[] = "fleet.yaml";
constexpr std::chrono::seconds kJoinDeadline(20);
constexpr size_t kShownDigits = 16;

grpc::ChannelArguments Arguments(const std::string& server_name) {
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(server_name);
  arguments.SetMaxReceiveMessageSize(16 << 20);
  // Links to one controller use separate connections, and a lost peer is noticed.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  // The environment's proxy is meant for downloads, not for the fleet.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

// Only the controller shows a certificate.
std::shared_ptr<grpc::Channel> JoinChannel(const identity::JoinFile& file,
                                           const std::string& controller) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = file.trust_bundle;
  return grpc::CreateCustomChannel(controller, grpc::SslCredentials(options),
                                   Arguments(file.server_name));
}

std::string FleetText(const identity::JoinFile& file, const std::string& gateway) {
  YAML::Emitter out;
  out << YAML::Comment("What this host joined; written by rocegw-agent --join.") << YAML::Newline;
  out << YAML::BeginMap << YAML::Key << "gateway" << YAML::Value << gateway;
  out << YAML::Key << "server_name" << YAML::Value << file.server_name;
  out << YAML::Key << "controllers" << YAML::Value << file.controllers << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace

StatusOr<NodeIdentity> NodeIdentity::Load(const std::string& directory) {
  NodeIdentity identity(directory);
  auto text = ReadSmallFile(identity.File(kFleet));
  if (!text.ok()) return text.status();
  try {
    const YAML::Node root = YAML::Load(*text);
    identity.gateway_ = root["gateway"].as<std::string>();
    identity.server_name_ = root["server_name"].as<std::string>();
    identity.controllers_ = root["controllers"].as<std::vector<std::string>>();
  } catch (const YAML::Exception& error) {
    return Status(EINVAL, identity.File(kFleet) + ": " + error.msg);
  }
  if (identity.controllers_.empty())
    return Status(EINVAL, identity.File(kFleet) + ": names no controller");
  const std::pair<const char*, std::string*> files[] = {
      {kKey, &identity.key_}, {kCertificate, &identity.chain_}, {kAuthority, &identity.bundle_}};
  for (const auto& [name, content] : files) {
    auto pem = ReadSmallFile(identity.File(name));
    if (!pem.ok()) return pem.status();
    *content = std::move(*pem);
  }
  auto facts = identity::FactsOfPem(identity.chain_);
  if (!facts.ok()) {
    return Status(facts.status().error(),
                  identity.File(kCertificate) + ": " + facts.status().text());
  }
  identity.facts_ = std::move(*facts);
  // A join that ended before it removed this copy of the key.
  (void)unlink(identity.File(kJoiningKey).c_str());
  return identity;
}

StatusOr<NodeIdentity> NodeIdentity::Join(const std::string& directory,
                                          const identity::JoinFile& file,
                                          const std::string& gateway,
                                          const std::string& pod_token) {
  if (auto known = Load(directory); known.ok()) {
    return Status(EEXIST, "this host has joined already, as " + known->gateway_ +
                              "; to join anew: 'rocegw-agent --leave' first");
  }
  if (file.token.empty() && pod_token.empty()) {
    return Status(EINVAL,
                  "the join file has no token: it is for agents in pods, which join with "
                  "--pod-token FILE");
  }
  NodeIdentity identity(directory);
  auto key_pem = identity.KeyToJoinWith();
  if (!key_pem.ok()) return key_pem.status();
  auto key = identity::KeyFromPem(*key_pem);
  if (!key.ok()) return key.status();
  auto request_pem = identity::NewCertificateRequest(**key);
  if (!request_pem.ok()) return request_pem.status();
  fleet::v1::JoinRequest request;
  request.set_gateway(gateway);
  if (file.token.empty()) {
    request.set_service_account_token(pod_token);
  } else {
    request.set_token(file.token);
  }
  request.set_certificate_request(*request_pem);
  fleet::v1::JoinResponse response;
  std::string problems;
  bool joined = false;
  for (const std::string& controller : file.controllers) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kJoinDeadline);
    const auto stub = fleet::v1::NodeService::NewStub(JoinChannel(file, controller));
    const grpc::Status status = stub->Join(&context, request, &response);
    joined = status.ok();
    if (joined) break;
    problems += "\n  " + controller + ": " + status.error_message();
    // Another controller of the same fleet would answer the same.
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
        status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
      break;
    }
  }
  if (!joined) return Status(ECONNREFUSED, "cannot join:" + problems);
  if (Status status = WriteDurably(identity.File(kKey), *key_pem, 0600); !status.ok())
    return status;
  if (Status status =
          identity.WriteCertificates(response.certificate_chain(), response.trust_bundle());
      !status.ok()) {
    return status;
  }
  // Written last: without this file the host has not joined.
  if (Status status = WriteDurably(identity.File(kFleet), FleetText(file, gateway), 0644);
      !status.ok()) {
    return status;
  }
  return Load(directory);
}

StatusOr<std::string> NodeIdentity::KeyToJoinWith() const {
  // A join that ended before its certificate was stored has used up its token for this key.
  if (auto stored = ReadSmallFile(File(kJoiningKey));
      stored.ok() && identity::KeyFromPem(*stored).ok())
    return stored;
  auto key = identity::NewKey();
  if (!key.ok()) return key.status();
  auto pem = identity::KeyToPem(**key);
  if (!pem.ok()) return pem.status();
  if (Status status = WriteDurably(File(kJoiningKey), *pem, 0600); !status.ok()) return status;
  return pem;
}

Status NodeIdentity::WriteCertificates(const std::string& chain, const std::string& bundle) {
  if (Status status = WriteDurably(File(kAuthority), bundle, 0644); !status.ok()) return status;
  return WriteDurably(File(kCertificate), chain, 0644);
}

bool NodeIdentity::IsDueForRenewal(identity::TimePoint now) const {
  return identity::IsDueForRenewal(facts_, now);
}

std::string NodeIdentity::WhyNotValid(identity::TimePoint now) const {
  const std::string id = gateway_.substr(gateway_.rfind('/') + 1);
  const std::string remedy =
      "; set the clock if it is wrong, else this host must join again: on a controller's host "
      "'rocegw-controller join-token --gateway " +
      id + "', here remove " + File(kFleet) + " and run 'rocegw-agent --join FILE'";
  const std::string clock = ", the clock of this host says " + identity::TimeText(now);
  if (now >= facts_.not_after) {
    return File(kCertificate) + " has ended at " + identity::TimeText(facts_.not_after) + clock +
           remedy;
  }
  if (now < facts_.not_before) {
    return File(kCertificate) + " begins at " + identity::TimeText(facts_.not_before) + clock +
           remedy;
  }
  return {};
}

std::string NodeIdentity::HowToJoinAnew() const {
  const std::string id = gateway_.substr(gateway_.rfind('/') + 1);
  const std::string join =
      RunsInPod() ? "'rocegw-agent --leave' in this pod, delete the pod, and scripts/join-nodes"
                  : "'rocegw-agent --leave' here, stop rocegw-agent, join with the file of "
                    "'rocegw-controller join-token --gateway " +
                        id + "', and start it";
  return "if the new fleet is this host's: " + join + "; then 'rocegwctl fleet adopt " + id +
         "', or the gateway keeps the configuration of the old one";
}

std::string NodeIdentity::Explained(const std::string& controller, const std::string& error) const {
  // gRPC passes on the text of OpenSSL.
  if (error.find("certificate verify failed") == std::string::npos) return error;
  auto authority = identity::FactsOfPem(bundle_);
  return "the controller " + controller + " is not of the fleet that this host joined as " +
         gateway_ + ": the authority in " + File(kAuthority) + " (SHA-256 " +
         (authority.ok() ? identity::Hex(authority->fingerprint).substr(0, kShownDigits) : "?") +
         "...) did not make its certificate, or a clock is wrong; the controller was set up anew "
         "with an empty state_dir, or is another fleet's; " +
         HowToJoinAnew();
}

Status NodeIdentity::IsOfFleet(const identity::JoinFile& file) const {
  auto own = identity::CertificatesFromPem(bundle_);
  auto theirs = identity::CertificatesFromPem(file.trust_bundle);
  if (!own.ok()) return {own.status().error(), File(kAuthority) + ": " + own.status().text()};
  if (!theirs.ok()) return {theirs.status().error(), "trust_bundle: " + theirs.status().text()};
  for (const auto& one : *own) {
    for (const auto& other : *theirs) {
      if (X509_cmp(one.get(), other.get()) == 0) return OkStatus();
    }
  }
  return {ESTALE, "this host joined another fleet, as " + gateway_ + "; " + HowToJoinAnew()};
}

Status NodeIdentity::Leave(const std::string& directory) {
  const std::string path = directory + "/" + kFleet;
  if (unlink(path.c_str()) != 0) return {errno, path + ": " + std::strerror(errno)};
  return OkStatus();
}

std::shared_ptr<grpc::Channel> NodeIdentity::ChannelTo(const std::string& controller) const {
  namespace tls = grpc::experimental;
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<tls::StaticDataCertificateProvider>(
      bundle_, std::vector<tls::IdentityKeyCertPair>{{key_, chain_}}));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  return grpc::CreateCustomChannel(controller, tls::TlsCredentials(options),
                                   Arguments(server_name_));
}

StatusOr<std::string> NodeIdentity::CertificateRequest() const {
  auto key = identity::KeyFromPem(key_);
  if (!key.ok()) return Status(key.status().error(), File(kKey) + ": " + key.status().text());
  return identity::NewCertificateRequest(**key);
}

Status NodeIdentity::TakeRenewed(const std::string& certificate_chain,
                                 const std::string& trust_bundle) {
  auto facts = identity::FactsOfPem(certificate_chain);
  if (!facts.ok()) return facts.status();
  if (Status status = WriteCertificates(certificate_chain, trust_bundle); !status.ok())
    return status;
  facts_ = std::move(*facts);
  chain_ = certificate_chain;
  bundle_ = trust_bundle;
  return OkStatus();
}

}  // namespace rocegw::agent
