// SPDX-License-Identifier: Apache-2.0
// What we need to know of certificates and of requests for them, as values. Serial numbers are 19
// bytes, written as 38 hexadecimal digits: microseconds since 1970 at which it was issued, then 88
// random bits. So they grow with the time of issue, compare as texts, and cannot be guessed. Any
// thread.
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

// How long before its issue a certificate of the authority begins: a clock that was ahead when a
// certificate was made, or is behind where it is judged, makes no certificate of the future.
inline constexpr std::chrono::years kBackdated(10);
// Clocks of hosts differ by so much without anybody's fault.
inline constexpr std::chrono::minutes kClockTolerance(5);

struct CertificateFacts {
  std::string uri;  // "spiffe://DOMAIN/node/G"; empty: it has none, or several
  std::string serial;
  TimePoint not_before;
  TimePoint not_after;
  // When the authority made the certificate, by its clock.
  TimePoint issued;
  std::vector<std::string> names;  // DNS names and addresses, in the order of the certificate
  std::string fingerprint;         // SHA-256 of the whole
};

CertificateFacts FactsOf(X509& certificate);
StatusOr<CertificateFacts> FactsOfPem(std::string_view pem);

// Half of the time from issue to end has passed, or the issue lies in the future: a clock was set.
bool IsDueForRenewal(const CertificateFacts& facts, TimePoint now);
TimePoint MiddleOfLife(const CertificateFacts& facts);

// 38 digits; random: also those behind the time.
std::string NewSerial(TimePoint issued);
// The smallest that can be issued at this time.
std::string LeastSerial(TimePoint issued);
// Of a text that NewSerial or LeastSerial made; empty: 1970.
TimePoint TimeOfSerial(std::string_view serial);

// The public key of a PKCS #10 request (PEM, one), whose signature by that key was checked. Nothing
// else in it counts. The text of an error is for the one who made the request.
StatusOr<Key> PublicKeyOfRequest(std::string_view pem);
// SHA-256 of its SubjectPublicKeyInfo.
std::string DigestOfKey(EVP_PKEY& key);

}  // namespace rocegw::identity
