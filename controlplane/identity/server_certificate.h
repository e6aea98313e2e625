// SPDX-License-Identifier: Apache-2.0
// The controller's own certificate in its state directory: server.key, made once, server.crt, and
// ca.crt beside them, all three watched by gRPC, which takes up new ones without a restart. The key
// stays when the certificate is renewed: two files cannot be replaced at one moment. One thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "controlplane/identity/certificate_authority.h"
#include "gateway/base/status.h"

namespace rocegw::identity {

class ServerCertificate {
 public:
  // names: further DNS names and addresses under which clients call.
  ServerCertificate(const CertificateAuthority& authority, std::string directory,
                    std::vector<std::string> names, std::chrono::seconds lifetime);

  // Issues one when there is none, it is of another authority, it lacks a name, half of its time
  // has passed, or it was issued in the future. True: there is a new one.
  StatusOr<bool> Renew();

  std::string key_file() const { return directory_ + "/server.key"; }
  std::string certificate_file() const { return directory_ + "/server.crt"; }
  std::string authority_file() const { return directory_ + "/ca.crt"; }
  // Of the certificate that is in the file since the last Renew.
  TimePoint not_after() const { return not_after_; }
  // Whether Renew has something to do now, also because the clock was set back.
  bool IsDue() const;
  // When Renew has something to do.
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

// The host's names and addresses under which others may call it: host name, and the addresses of
// its interfaces that are up, without loopback and link-local ones.
std::vector<std::string> NamesOfHost();

}  // namespace rocegw::identity
