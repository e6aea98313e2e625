// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/controller_identity.h"

#include <grpcpp/security/tls_credentials_options.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "controlplane/identity/join_token.h"
#include "controlplane/server/keepalive.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::server {
namespace {

constexpr std::chrono::seconds kRenewRetry(30);
constexpr unsigned kFileWatchSeconds = 1;
constexpr char kAuthorityKey[] = "authority";

}  // namespace

Status ControllerIdentity::Open(const Config& config) {
  state_dir_ = config.state_dir;
  auto opened = identity::CertificateAuthority::Open(config.state_dir, config.trust_domain);
  if (!opened.ok()) return opened.status();
  authority_ = std::move(*opened);
  std::vector<std::string> names = identity::NamesOfHost();
  names.insert(names.end(), config.names.begin(), config.names.end());
  certificate_ = std::make_unique<identity::ServerCertificate>(
      *authority_, config.state_dir, std::move(names), config.server_lifetime);
  auto renewed = certificate_->Renew();
  if (!renewed.ok()) return renewed.status();
  next_renewal_ = certificate_->renew_at();
  return OkStatus();
}

// All controllers of a store must have one authority; otherwise agents of one are strangers to
// another.
Status ControllerIdentity::Claim(store::Store& store) {
  auto found = store.Get(kAuthorityKey);
  if (!found.ok()) return found.status();
  controlplane::v1::AuthorityRecord record;
  if (found->has_value() && record.ParseFromString((*found)->value)) {
    if (record.fingerprint() == authority_->fingerprint()) return OkStatus();
    if (!authority_->Trusts(record.fingerprint())) {
      return {EINVAL, "state_dir " + state_dir_ +
                          ": the store belongs to a fleet with another certificate authority; copy "
                          "ca.key and ca.crt from a controller of that fleet, or append its ca.crt "
                          "to this one to let this authority take over"};
    }
  }
  is_new_ = !found->has_value();
  record.set_fingerprint(authority_->fingerprint());
  store::Transaction transaction;
  transaction.compares = {
      store::Compare::ModifiedAt(kAuthorityKey, is_new_ ? 0 : (*found)->mod_revision)};
  transaction.then = {store::Operation::Put(kAuthorityKey, record.SerializeAsString())};
  auto written = store.Txn(std::move(transaction));
  if (!written.ok()) return written.status();
  // Another controller was faster: checks what it wrote.
  return written->succeeded ? OkStatus() : Claim(store);
}

std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider>
ControllerIdentity::Certificates() const {
  return std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      certificate_->key_file(), certificate_->certificate_file(), certificate_->authority_file(),
      kFileWatchSeconds);
}

std::shared_ptr<grpc::Channel> ControllerIdentity::ChannelTo(const std::string& address) const {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Certificates());
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(identity::ServerName(authority_->domain()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::experimental::TlsCredentials(options), arguments);
}

void ControllerIdentity::Keep() {
  LookAtClock();
  if (identity::Now() >= next_renewal_) Renew();
}

void ControllerIdentity::LookAtClock() {
  const auto step = clock_.Look(identity::Now(), std::chrono::steady_clock::now());
  if (!step) return;
  spdlog::warn("{}", identity::ClockStepText(*step));
  start_anew_ = *step <= identity::kStepToStartAnew;
  next_renewal_ = certificate_->IsDue() ? identity::Now() : certificate_->renew_at();
}

void ControllerIdentity::Renew() {
  auto renewed = certificate_->Renew();
  if (renewed.ok()) {
    spdlog::info("the controller's certificate is renewed, until {}",
                 identity::TimeText(certificate_->not_after()));
    next_renewal_ = certificate_->renew_at();
  } else {
    spdlog::error("the controller's certificate cannot be renewed: {}", renewed.status().text());
  }
  // At least one interval between renewals, even if the lifetime is shorter than the backdating.
  next_renewal_ = std::max(
      next_renewal_, identity::Now() + (renewed.ok() ? std::chrono::seconds(1) : kRenewRetry));
}

std::string ControllerIdentity::Invalid() const {
  const identity::TimePoint now = identity::Now();
  const std::string it_is = "; the clock of this host says " + identity::TimeText(now);
  if (now < authority_->not_before()) {
    return "the certificate authority begins at " + identity::TimeText(authority_->not_before()) +
           it_is;
  }
  if (now >= authority_->not_after()) {
    return "the certificate authority has ended at " + identity::TimeText(authority_->not_after()) +
           it_is;
  }
  if (now >= certificate_->not_after()) {
    return "the controller's certificate has ended at " +
           identity::TimeText(certificate_->not_after()) + it_is;
  }
  return {};
}

}  // namespace rocegw::server
