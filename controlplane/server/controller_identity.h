// SPDX-License-Identifier: Apache-2.0
// Identity of this controller: the fleet's certificate authority, the controller's own certificate
// with its renewals, and the clock that both depend on. Created, opened and kept on one thread;
// ChannelTo: any thread.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "controlplane/identity/certificate_authority.h"
#include "controlplane/identity/clock_watch.h"
#include "controlplane/identity/server_certificate.h"
#include "controlplane/server/config.h"
#include "controlplane/store/store.h"
#include "gateway/base/status.h"

namespace rocegw::server {

class ControllerIdentity {
 public:
  // Opens the authority and the certificate in the state directory; creates missing ones.
  Status Open(const Config& config);
  // Checks that the store is of a fleet with this authority. Writes the authority into a new store.
  Status Claim(store::Store& store);
  // Returns true if the store had no authority before Claim.
  bool claimed_new_store() const { return is_new_; }

  // Valid after Open.
  const identity::CertificateAuthority& authority() const { return *authority_; }
  identity::TimePoint server_expiry() const { return certificate_->not_after(); }
  // Returns a provider of the certificate, its key and the trusted authorities, which reloads the
  // files after a renewal.
  std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider> Certificates() const;
  // Returns a channel to another controller, with this one's current certificate.
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) const;

  // Renews the certificate when due, and looks at the clock. Call it at `next_renewal` at the
  // latest.
  void Keep();
  identity::TimePoint next_renewal() const { return next_renewal_; }
  uint64_t clock_steps() const { return clock_.steps(); }
  // Returns true if the last step of the clock set it back so far that the process should restart.
  bool wants_to_start_anew() const { return start_anew_; }
  // Returns why the certificates are of no use now; empty: they are valid.
  std::string Invalid() const;

 private:
  void LookAtClock();
  void Renew();

  std::string state_dir_;
  std::unique_ptr<identity::CertificateAuthority> authority_;
  std::unique_ptr<identity::ServerCertificate> certificate_;
  identity::TimePoint next_renewal_;
  identity::ClockWatch clock_;
  bool start_anew_ = false;
  bool is_new_ = false;
};

}  // namespace rocegw::server
