// SPDX-License-Identifier: Apache-2.0
// Certificate authority of the fleet, in two files of the controller's state directory: ca.key and
// ca.crt. ca.crt may contain further certificates behind the authority's own: trusted ones during a
// change of the authority. Constant after Open; any thread. Signing takes about 50 us.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/identity/certificate.h"
#include "gateway/base/status.h"

namespace rocegw::identity {

struct Issued {
  std::string pem;
  std::string serial;
  TimePoint not_after;
};

class CertificateAuthority {
 public:
  // Opens the authority and creates missing files. `domain`: trust domain (a DNS name); an existing
  // authority must belong to it. Errors state a remedy.
  static StatusOr<std::unique_ptr<CertificateAuthority>> Open(const std::string& directory,
                                                              const std::string& domain);

  const std::string& domain() const { return domain_; }
  // Trusted certificates, PEM, the authority's own first.
  const std::string& bundle() const { return bundle_; }
  TimePoint not_before() const { return not_before_; }
  TimePoint not_after() const { return not_after_; }
  const std::string& fingerprint() const { return fingerprint_; }
  // Returns true if a certificate with this fingerprint is in the bundle.
  bool Trusts(const std::string& fingerprint) const;

  // Issues a certificate for the public key with the given serial (NewSerial), valid from a little
  // before now. `name` is a DNS label.
  StatusOr<Issued> IssueNode(EVP_PKEY& key, const std::string& name, std::chrono::seconds lifetime,
                             const std::string& serial) const;
  StatusOr<Issued> IssueUser(EVP_PKEY& key, const std::string& name, std::chrono::seconds lifetime,
                             const std::string& serial) const;
  // `names`: DNS names and addresses besides ServerName.
  StatusOr<Issued> IssueServer(EVP_PKEY& key, const std::vector<std::string>& names,
                               std::chrono::seconds lifetime, const std::string& serial) const;

  // Returns a secret that only holders of the authority's key can compute, for one purpose.
  StatusOr<std::string> DerivedSecret(const std::string& purpose) const;

  // Returns true if the authority's own key signed the certificate.
  bool Signed(X509& certificate) const;

 private:
  enum class Usage { kClient, kServer };
  struct Wish {
    std::string subject;
    std::string uri;
    std::vector<std::string> names;
    Usage usage = Usage::kClient;
    std::chrono::seconds lifetime{0};
    std::string serial;
  };
  CertificateAuthority() = default;
  StatusOr<Issued> Issue(EVP_PKEY& key, const Wish& wish) const;

  std::string domain_;
  std::string bundle_;
  std::string fingerprint_;
  std::vector<std::string> trusted_;  // fingerprints
  TimePoint not_before_;
  TimePoint not_after_;
  Key key_;
  X509Certificate certificate_;
};

// Returns the DNS name in every controller's certificate: clients that know only an address
// (agents) ask for this name in the handshake.
std::string ServerName(const std::string& domain);

// Returns "spiffe://DOMAIN/node/NAME".
std::string NodeUri(const std::string& domain, const std::string& name);
std::string UserUri(const std::string& domain, const std::string& name);
// Returns "node/NAME" of such a URI; empty: another form or domain.
std::string PathOfUri(const std::string& domain, const std::string& uri);

}  // namespace rocegw::identity
