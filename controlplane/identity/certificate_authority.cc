// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/certificate_authority.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "controlplane/identity/join_token.h"
#include "controlplane/model/resource_name.h"
#include "gateway/disk/durable_file.h"

namespace rocegw::identity {
namespace {

constexpr std::chrono::years kAuthorityLifetime(10);
// Clocks before this program was written are wrong.
constexpr std::chrono::sys_days kEarliest(std::chrono::year(2025) / 1 / 1);
constexpr std::string_view kScheme = "spiffe://";

bool SetTimes(X509& certificate, TimePoint begin, TimePoint end) {
  const auto seconds = [](TimePoint time) {
    return static_cast<time_t>(time.time_since_epoch() / std::chrono::seconds(1));
  };
  return ASN1_TIME_set(X509_getm_notBefore(&certificate), seconds(begin)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(&certificate), seconds(end)) != nullptr;
}

bool SetSerial(X509& certificate, const std::string& digits) {
  BIGNUM* number = nullptr;
  const bool good = BN_hex2bn(&number, digits.c_str()) == static_cast<int>(digits.size()) &&
                    BN_to_ASN1_INTEGER(number, X509_get_serialNumber(&certificate)) != nullptr;
  BN_free(number);
  return good;
}

bool SetName(X509_NAME* name, const std::string& text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>("rocegw"), -1, -1,
                                    0) == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, bytes, static_cast<int>(text.size()),
                                    -1, 0) == 1;
}

// `value` must be a constant of this file, never foreign text: the function parses a language.
bool AddExtension(X509& certificate, X509& issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension != nullptr && X509_add_ext(&certificate, extension.get(), -1) == 1;
}

bool AddName(GENERAL_NAMES& names, int type, std::string_view bytes) {
  GENERAL_NAME* const name = GENERAL_NAME_new();
  ASN1_STRING* const text =
      ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
  if (name == nullptr || text == nullptr ||
      ASN1_STRING_set(text, bytes.data(), static_cast<int>(bytes.size())) != 1) {
    GENERAL_NAME_free(name);
    ASN1_STRING_free(text);
    return false;
  }
  GENERAL_NAME_set0_value(name, type, text);
  if (sk_GENERAL_NAME_push(&names, name) == 0) {
    GENERAL_NAME_free(name);
    return false;
  }
  return true;
}

bool AddHost(GENERAL_NAMES& names, const std::string& host) {
  std::array<char, 16> address{};
  if (inet_pton(AF_INET, host.c_str(), address.data()) == 1)
    return AddName(names, GEN_IPADD, {address.data(), 4});
  if (inet_pton(AF_INET6, host.c_str(), address.data()) == 1)
    return AddName(names, GEN_IPADD, {address.data(), 16});
  return AddName(names, GEN_DNS, host);
}

bool AddAlternativeNames(X509& certificate, const std::string& uri,
                         const std::vector<std::string>& hosts) {
  const AlternativeNames names(GENERAL_NAMES_new());
  if (names == nullptr || !AddName(*names, GEN_URI, uri)) return false;
  for (const std::string& host : hosts) {
    if (!AddHost(*names, host)) return false;
  }
  return X509_add1_ext_i2d(&certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_APPEND) ==
         1;
}

StatusOr<X509Certificate> MakeAuthority(EVP_PKEY& key, const std::string& domain) {
  X509Certificate certificate(X509_new());
  const TimePoint now = Now();
  const bool good =
      certificate != nullptr && X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
      SetSerial(*certificate, NewSerial(now)) &&
      SetTimes(*certificate, now - kBackdated, now + kAuthorityLifetime) &&
      SetName(X509_get_subject_name(certificate.get()), "fleet " + domain) &&
      X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get())) == 1 &&
      X509_set_pubkey(certificate.get(), &key) == 1 &&
      AddExtension(*certificate, *certificate, NID_basic_constraints,
                   "critical,CA:TRUE,pathlen:0") &&
      AddExtension(*certificate, *certificate, NID_key_usage, "critical,keyCertSign,cRLSign") &&
      AddExtension(*certificate, *certificate, NID_subject_key_identifier, "hash") &&
      AddAlternativeNames(*certificate, std::string(kScheme) + domain, {}) &&
      X509_sign(certificate.get(), &key, EVP_sha256()) != 0;
  if (!good) return OpensslError("cannot make the certificate authority");
  return certificate;
}

Status MakeFiles(const std::string& key_file, const std::string& certificate_file,
                 const std::string& domain, bool with_key) {
  if (Now() < kEarliest) {
    return {EINVAL, "the clock of this host says " + TimeText(Now()) +
                        ": set it; a certificate authority that is made now would have ended when "
                        "the clock is right"};
  }
  StatusOr<Key> key = Status(ENOENT, "");
  if (with_key) {
    key = NewKey();
    if (!key.ok()) return key.status();
    auto pem = KeyToPem(**key);
    if (!pem.ok()) return pem.status();
    if (Status status = WriteDurably(key_file, *pem, 0600); !status.ok()) return status;
  } else {
    auto pem = ReadSmallFile(key_file);
    if (!pem.ok()) return pem.status();
    key = KeyFromPem(*pem);
    if (!key.ok()) return {key.status().error(), key_file + ": " + key.status().text()};
  }
  auto certificate = MakeAuthority(**key, domain);
  if (!certificate.ok()) return certificate.status();
  auto pem = CertificateToPem(**certificate);
  if (!pem.ok()) return pem.status();
  return WriteDurably(certificate_file, *pem, 0644);
}

// Returns the fingerprints of all certificates in a text.
std::vector<std::string> FingerprintsOf(const std::string& bundle) {
  static constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  std::vector<std::string> found;
  for (size_t at = bundle.find(kBegin); at != std::string::npos;
       at = bundle.find(kBegin, at + kBegin.size())) {
    auto facts = FactsOfPem(std::string_view(bundle).substr(at));
    if (facts.ok()) found.push_back(facts->fingerprint);
  }
  return found;
}

}  // namespace

std::string ServerName(const std::string& domain) { return "controller." + domain; }

std::string NodeUri(const std::string& domain, const std::string& name) {
  return std::string(kScheme) + domain + "/node/" + name;
}

std::string UserUri(const std::string& domain, const std::string& name) {
  return std::string(kScheme) + domain + "/user/" + name;
}

std::string PathOfUri(const std::string& domain, const std::string& uri) {
  const std::string prefix = std::string(kScheme) + domain + "/";
  return uri.starts_with(prefix) ? uri.substr(prefix.size()) : std::string();
}

StatusOr<std::unique_ptr<CertificateAuthority>> CertificateAuthority::Open(
    const std::string& directory, const std::string& domain) {
  const std::string key_file = directory + "/ca.key";
  const std::string certificate_file = directory + "/ca.crt";
  auto key_pem = ReadSmallFile(key_file);
  auto bundle = ReadSmallFile(certificate_file);
  const bool no_key = key_pem.status().error() == ENOENT;
  const bool no_certificate = bundle.status().error() == ENOENT;
  if (no_certificate) {
    // A key without certificate remains from an interrupted first start, or the certificate was
    // lost: the same key can sign itself again, and earlier certificates stay valid.
    if (Status status = MakeFiles(key_file, certificate_file, domain, no_key); !status.ok()) {
      return status;
    }
    key_pem = ReadSmallFile(key_file);
    bundle = ReadSmallFile(certificate_file);
  } else if (no_key) {
    return Status(ENOENT, key_file + " is missing, though " + certificate_file +
                              " is there: restore it from the backup; or remove both, for a new "
                              "authority with which all hosts must join anew");
  }
  if (!key_pem.ok()) return key_pem.status();
  if (!bundle.ok()) return bundle.status();

  std::unique_ptr<CertificateAuthority> authority(new CertificateAuthority());
  auto key = KeyFromPem(*key_pem);
  if (!key.ok()) return Status(EINVAL, key_file + ": " + key.status().text());
  auto certificate = CertificateFromPem(*bundle);
  if (!certificate.ok())
    return Status(EINVAL, certificate_file + ": " + certificate.status().text());
  if (X509_check_private_key(certificate->get(), key->get()) != 1) {
    return Status(EINVAL,
                  OpensslError(certificate_file + ": its first certificate does not belong to " +
                               key_file + "; restore both from the same backup")
                      .text());
  }
  const CertificateFacts facts = FactsOf(**certificate);
  if (X509_check_ca(certificate->get()) != 1) {
    return Status(EINVAL, certificate_file + ": its first certificate is not an authority's");
  }
  if (facts.not_after <= Now()) {
    return Status(EINVAL, certificate_file + ": the authority has expired at " +
                              TimeText(facts.not_after) + ", the clock of this host says " +
                              TimeText(Now()) + "; set the clock, or remove it and " + key_file +
                              " for a new one, with which all hosts must join anew");
  }
  if (facts.not_before > Now()) {
    return Status(EINVAL,
                  certificate_file + ": the authority begins at " + TimeText(facts.not_before) +
                      ", the clock of this host says " + TimeText(Now()) +
                      "; set the clock. If the clock was wrong when the authority was made: move " +
                      certificate_file +
                      " away and start again, then the key signs itself anew; append the old file "
                      "to the new one, and copy the new one to the state_dir of the hosts that "
                      "have joined");
  }
  if (facts.uri != std::string(kScheme) + domain) {
    return Status(EINVAL, certificate_file + " is of the trust domain '" +
                              facts.uri.substr(std::min(kScheme.size(), facts.uri.size())) +
                              "', the configuration says '" + domain +
                              "': set trust_domain to the former");
  }
  authority->domain_ = domain;
  authority->bundle_ = std::move(*bundle);
  authority->trusted_ = FingerprintsOf(authority->bundle_);
  authority->fingerprint_ = facts.fingerprint;
  authority->not_before_ = facts.not_before;
  authority->not_after_ = facts.not_after;
  authority->key_ = std::move(*key);
  authority->certificate_ = std::move(*certificate);
  return authority;
}

bool CertificateAuthority::Trusts(const std::string& fingerprint) const {
  return std::ranges::count(trusted_, fingerprint) != 0;
}

StatusOr<std::string> CertificateAuthority::DerivedSecret(const std::string& purpose) const {
  // The encoding exists for keys of all kinds, and does not depend on how the file writes the key.
  unsigned char* encoded = nullptr;
  const int size = i2d_PrivateKey(key_.get(), &encoded);
  if (size <= 0) return OpensslError("cannot encode the authority's key");
  std::string secret = HmacSha256(
      {reinterpret_cast<const char*>(encoded), static_cast<size_t>(size)}, "rocegw " + purpose);
  OPENSSL_clear_free(encoded, static_cast<size_t>(size));
  return secret;
}

bool CertificateAuthority::Signed(X509& certificate) const {
  return X509_verify(&certificate, key_.get()) == 1;
}

StatusOr<Issued> CertificateAuthority::IssueNode(EVP_PKEY& key, const std::string& name,
                                                 std::chrono::seconds lifetime,
                                                 const std::string& serial) const {
  if (!model::IsDnsLabel(name)) return Status(EINVAL, "'" + name + "' is not a name of a node");
  return Issue(key, {.subject = name,
                     .uri = NodeUri(domain_, name),
                     .names = {},
                     .usage = Usage::kClient,
                     .lifetime = lifetime,
                     .serial = serial});
}

StatusOr<Issued> CertificateAuthority::IssueUser(EVP_PKEY& key, const std::string& name,
                                                 std::chrono::seconds lifetime,
                                                 const std::string& serial) const {
  if (!model::IsDnsLabel(name)) {
    return Status(EINVAL, "'" + name +
                              "' is not a name of a user: 1 to 63 of a-z, 0-9 and '-', "
                              "with no '-' at either end");
  }
  return Issue(key, {.subject = name,
                     .uri = UserUri(domain_, name),
                     .names = {},
                     .usage = Usage::kClient,
                     .lifetime = lifetime,
                     .serial = serial});
}

StatusOr<Issued> CertificateAuthority::IssueServer(EVP_PKEY& key,
                                                   const std::vector<std::string>& names,
                                                   std::chrono::seconds lifetime,
                                                   const std::string& serial) const {
  Wish wish{.subject = ServerName(domain_),
            .uri = std::string(kScheme) + domain_ + "/controller",
            .names = {ServerName(domain_)},
            .usage = Usage::kServer,
            .lifetime = lifetime,
            .serial = serial};
  wish.names.insert(wish.names.end(), names.begin(), names.end());
  return Issue(key, wish);
}

StatusOr<Issued> CertificateAuthority::Issue(EVP_PKEY& key, const Wish& wish) const {
  const X509Certificate certificate(X509_new());
  const TimePoint now = Now();
  // No peer would trust it for longer than its authority.
  const TimePoint end = std::min<TimePoint>(now + wish.lifetime, not_after_);
  // Controllers also call each other.
  const char* const usage = wish.usage == Usage::kServer ? "serverAuth,clientAuth" : "clientAuth";
  X509& made = *certificate;
  const bool good =
      certificate != nullptr && X509_set_version(&made, X509_VERSION_3) == 1 &&
      SetSerial(made, wish.serial) && SetTimes(made, now - kBackdated, end) &&
      SetName(X509_get_subject_name(&made), wish.subject) &&
      X509_set_issuer_name(&made, X509_get_subject_name(certificate_.get())) == 1 &&
      X509_set_pubkey(&made, &key) == 1 &&
      AddExtension(made, *certificate_, NID_basic_constraints, "critical,CA:FALSE") &&
      AddExtension(made, *certificate_, NID_key_usage, "critical,digitalSignature") &&
      AddExtension(made, *certificate_, NID_ext_key_usage, usage) &&
      AddExtension(made, *certificate_, NID_subject_key_identifier, "hash") &&
      AddExtension(made, *certificate_, NID_authority_key_identifier, "keyid:always") &&
      AddAlternativeNames(made, wish.uri, wish.names) &&
      X509_sign(&made, key_.get(), EVP_sha256()) != 0;
  if (!good) return OpensslError("cannot issue a certificate for " + wish.uri);
  auto pem = CertificateToPem(made);
  if (!pem.ok()) return pem.status();
  return Issued{.pem = std::move(*pem), .serial = wish.serial, .not_after = end};
}

}  // namespace rocegw::identity
