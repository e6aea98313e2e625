// SPDX-License-Identifier: Apache-2.0
// The controller's own certificate in its state directory: server.key, created once, server.crt,
// and ca.crt beside them. gRPC watches all three and reloads them without a restart. The key stays
// at a renewal: two files cannot be replaced at once. One thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "controlplane/identity/certificate_authority.h"
#include "gateway/base/status.h"

namespace rocegw::identity {

class ServerCertificate {
 public:
  // `names`: further DNS names and addresses that clients use.
  ServerCertificate(const CertificateAuthority& authority, std::string directory,
                    std::vector<std::string> names, std::chrono::seconds lifetime);

  // Issues a certificate if there is none, or it is of another authority, lacks a name, has passed
  // half of its time, or was issued in the future. Returns true for a new one.
  StatusOr<bool> Renew();

  std::string key_file() const { return directory_ + "/server.key"; }
  std::string certificate_file() const { return directory_ + "/server.crt"; }
  std::string authority_file() const { return directory_ + "/ca.crt"; }
  // Expiry of the certificate in the file since the last Renew.
  TimePoint not_after() const { return not_after_; }
  // Returns true if Renew has work now, also because the clock was set back.
  bool IsDue() const;
  // Time at which Renew has work.
  TimePoint renew_at() const { return renew_at_; }

 private:
  StatusOr<Key> LoadKey();
  bool IsGood(X509& certificate, EVP_PKEY& key, const CertificateFacts& facts) const;
  void Note(const CertificateFacts& facts);

  const CertificateAuthority& authority_;
  std::string directory_;
  std::vector<std::string> names_;
  std::chrono::seconds lifetime_;
  TimePoint not_after_;
  TimePoint renew_at_;
  CertificateFacts facts_;
};

// Returns the names and addresses under which others reach this host: host name, and the addresses
// of its active interfaces without loopback and link-local ones.
std::vector<std::string> NamesOfHost();

}  // namespace rocegw::identity
