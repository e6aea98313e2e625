// SPDX-License-Identifier: Apache-2.0
// Facts about certificates and certificate requests, as values. Serial numbers are 19 bytes,
// written as 38 hexadecimal digits: microseconds since 1970 at the time of issue, then 88 random
// bits. So they grow with the time of issue, compare as texts, and cannot be guessed. Any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/identity/openssl.h"
#include "gateway/base/status.h"

namespace rocegw::identity {

using Clock = std::chrono::system_clock;
using TimePoint = std::chrono::sys_time<std::chrono::microseconds>;

TimePoint Now();

// Time before its issue at which a certificate begins: a clock that was ahead at its issue, or is
// behind where it is checked, then makes no certificate of the future.
inline constexpr std::chrono::years kBackdated(10);
// Normal difference between the clocks of hosts.
inline constexpr std::chrono::minutes kClockTolerance(5);

struct CertificateFacts {
  std::string uri;  // "spiffe://DOMAIN/node/G"; empty: none, or several
  std::string serial;
  TimePoint not_before;
  TimePoint not_after;
  // Time of issue by the authority's clock.
  TimePoint issued;
  std::vector<std::string> names;  // DNS names and addresses, in the certificate's order
  std::string fingerprint;         // SHA-256 of the whole certificate
};

CertificateFacts FactsOf(X509& certificate);
StatusOr<CertificateFacts> FactsOfPem(std::string_view pem);

// Returns true if half of the time from issue to end has passed, or the issue lies in the future
// because a clock was set.
bool IsDueForRenewal(const CertificateFacts& facts, TimePoint now);
TimePoint MiddleOfLife(const CertificateFacts& facts);

// Returns 38 digits; `random`: also the digits of the time.
std::string NewSerial(TimePoint issued);
// Returns the smallest serial of that time.
std::string LeastSerial(TimePoint issued);
// Returns the time of a serial of NewSerial or LeastSerial; empty: 1970.
TimePoint TimeOfSerial(std::string_view serial);

// Returns the public key of a PKCS #10 request (PEM, one), after checking its signature by that
// key. All other contents are ignored. An error's text is for the requester.
StatusOr<Key> PublicKeyOfRequest(std::string_view pem);
// Returns SHA-256 of its SubjectPublicKeyInfo.
std::string DigestOfKey(EVP_PKEY& key);

}  // namespace rocegw::identity
