// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/server_certificate.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/disk/durable_file.h"

namespace rocegw::identity {
namespace {

std::string TextOf(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  } else if (address.sa_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&v6)) inet_ntop(AF_INET6, &v6, text, sizeof text);
  }
  return text;
}

}  // namespace

std::vector<std::string> NamesOfHost() {
  std::vector<std::string> names;
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) == 0 && host[0] != '\0') names.emplace_back(host);
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return names;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const bool useful = one->ifa_addr != nullptr && (one->ifa_flags & IFF_UP) != 0 &&
                        (one->ifa_flags & IFF_LOOPBACK) == 0;
    const std::string text = useful ? TextOf(*one->ifa_addr) : std::string();
    if (!text.empty() && std::ranges::count(names, text) == 0) names.push_back(text);
  }
  freeifaddrs(list);
  return names;
}

ServerCertificate::ServerCertificate(const CertificateAuthority& authority, std::string directory,
                                     std::vector<std::string> names, std::chrono::seconds lifetime)
    : authority_(authority),
      directory_(std::move(directory)),
      names_(std::move(names)),
      lifetime_(lifetime) {
  // For callers on the same host.
  for (const char* const name : {"localhost", "127.0.0.1", "::1"}) {
    if (std::ranges::count(names_, name) == 0) names_.emplace_back(name);
  }
}

StatusOr<Key> ServerCertificate::LoadKey() {
  auto pem = ReadSmallFile(key_file());
  if (pem.ok()) {
    auto key = KeyFromPem(*pem);
    if (key.ok()) return key;
    return Status(EINVAL, key_file() + ": " + key.status().text() + "; remove it for a new one");
  }
  if (pem.status().error() != ENOENT) return pem.status();
  auto key = NewKey();
  if (!key.ok()) return key.status();
  auto text = KeyToPem(**key);
  if (!text.ok()) return text.status();
  if (Status status = WriteDurably(key_file(), *text, 0600); !status.ok()) return status;
  return key;
}

bool ServerCertificate::IsGood(X509& certificate, EVP_PKEY& key,
                               const CertificateFacts& facts) const {
  return !IsDueForRenewal(facts, Now()) && X509_check_private_key(&certificate, &key) == 1 &&
         authority_.Signed(certificate) && std::ranges::all_of(names_, [&](const auto& name) {
           return std::ranges::count(facts.names, name) != 0;
         });
}

void ServerCertificate::Note(const CertificateFacts& facts) {
  not_after_ = facts.not_after;
  renew_at_ = MiddleOfLife(facts);
  facts_ = facts;
}

bool ServerCertificate::IsDue() const { return IsDueForRenewal(facts_, Now()); }

StatusOr<bool> ServerCertificate::Renew() {
  auto key = LoadKey();
  if (!key.ok()) return key.status();
  if (auto pem = ReadSmallFile(certificate_file()); pem.ok()) {
    auto certificate = CertificateFromPem(*pem);
    if (certificate.ok()) {
      const CertificateFacts facts = FactsOf(**certificate);
      if (IsGood(**certificate, **key, facts)) {
        Note(facts);
        return false;
      }
    }
  }
  auto issued = authority_.IssueServer(**key, names_, lifetime_, NewSerial(Now()));
  if (!issued.ok()) return issued.status();
  if (Status status = WriteDurably(certificate_file(), issued->pem, 0644); !status.ok()) {
    return status;
  }
  auto facts = FactsOfPem(issued->pem);
  if (!facts.ok()) return facts.status();
  Note(*facts);
  return true;
}

}  // namespace rocegw::identity
