// SPDX-License-Identifier: Apache-2.0
// The fleet's certificate authority, in two files of the controller's state directory: ca.key and
// ca.crt. ca.crt may hold further certificates behind the authority's own: those that are trusted
// too while one authority takes over from another. Constant after Open; any thread. Signing takes
// some 50 us.
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
  // Makes the files where there are none. `domain`: trust domain of a new one (a DNS name); an
  // existing one must be of it. Errors say what to do.
  static StatusOr<std::unique_ptr<CertificateAuthority>> Open(const std::string& directory,
                                                              const std::string& domain);

  const std::string& domain() const { return domain_; }
  // Whom to trust, PEM, the authority itself first.
  const std::string& bundle() const { return bundle_; }
  TimePoint not_before() const { return not_before_; }
  TimePoint not_after() const { return not_after_; }
  const std::string& fingerprint() const { return fingerprint_; }
  // Whether a certificate with this fingerprint is in the bundle.
  bool Trusts(const std::string& fingerprint) const;

  // For the public key, with the given serial (NewSerial), from a little before now on. `name` is a
  // DNS label.
  StatusOr<Issued> IssueNode(EVP_PKEY& key, const std::string& name, std::chrono::seconds lifetime,
                             const std::string& serial) const;
  StatusOr<Issued> IssueUser(EVP_PKEY& key, const std::string& name, std::chrono::seconds lifetime,
                             const std::string& serial) const;
  // names: DNS names and addresses besides ServerName.
  StatusOr<Issued> IssueServer(EVP_PKEY& key, const std::vector<std::string>& names,
                               std::chrono::seconds lifetime, const std::string& serial) const;

  // A certificate of which the authority's own key says that it made it.
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

// The DNS name that every controller's certificate has, wherever it stands: clients that come with
// an address only (agents) ask for this name in the handshake.
std::string ServerName(const std::string& domain);

// "spiffe://DOMAIN/node/NAME"
std::string NodeUri(const std::string& domain, const std::string& name);
std::string UserUri(const std::string& domain, const std::string& name);
// "node/NAME" of such a text; empty: it is none, or of another domain.
std::string PathOfUri(const std::string& domain, const std::string& uri);

}  // namespace rocegw::identity
