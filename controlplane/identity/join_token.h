// SPDX-License-Identifier: Apache-2.0
// Join tokens: 256 random bits that let one host become a node, once. The store has a hash. The
// file for the host contains everything else: addresses of controllers and trusted certificates.
// Values; any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/identity/certificate.h"
#include "controlplane/store/transaction.h"
#include "gateway/base/status.h"

namespace rocegw::identity {

inline constexpr std::chrono::hours kUsualTokenLifetime(1);
inline constexpr std::chrono::hours kLongestTokenLifetime(24);
inline constexpr std::string_view kJoinPrefix = "join/";

struct NewJoinToken {
  std::string token;     // "rocegw-join-..."; only for the file, never for a log or the store
  store::Operation put;  // writes its record
  TimePoint expires;
};

// `gateway`: "gateways/G" for this one only; empty: for an unused name. `principal`: the caller.
NewJoinToken MakeJoinToken(const std::string& gateway, std::chrono::seconds lifetime,
                           const std::string& principal, TimePoint now);

// Returns the key of its record; defined for any text.
std::string JoinTokenKey(std::string_view token);

// Contents of the join file, YAML. One without a token is for agents in pods, which have a token of
// their own.
struct JoinFile {
  std::vector<std::string> controllers;  // "host:port"
  std::string server_name;               // expected in the controllers' certificates
  std::string gateway;                   // "gateways/G"; empty: the host chooses
  std::string token;                     // empty: none
  std::string expires;                   // for display
  std::string trust_bundle;
};

std::string WriteJoinFile(const JoinFile& file);
// An error's text says what is wrong with the file.
StatusOr<JoinFile> ReadJoinFile(const std::string& text);

// "2026-11-21T15:00:00Z"
std::string TimeText(TimePoint time);

}  // namespace rocegw::identity
