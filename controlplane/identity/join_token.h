// SPDX-License-Identifier: Apache-2.0
// Join tokens: 256 random bits that let one host become a node, once. The store holds a hash. The
// file for the host holds everything else that it needs: whom to call and whom to trust. Values;
// any thread.
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
  std::string token;     // "rocegw-join-..."; for the file only, never for a log or the store
  store::Operation put;  // its record
  TimePoint expires;
};

// gateway: "gateways/G" for this one only; empty: for a name that nobody has. principal: who asks.
NewJoinToken MakeJoinToken(const std::string& gateway, std::chrono::seconds lifetime,
                           const std::string& principal, TimePoint now);

// The key of its record. Any text has one.
std::string JoinTokenKey(std::string_view token);

// What a host needs to join: YAML.
struct JoinFile {
  std::vector<std::string> controllers;  // "host:port"
  std::string server_name;               // expected in the controllers' certificates
  std::string gateway;                   // "gateways/G"; empty: the host's choice
  std::string token;
  std::string expires;  // for people
  std::string trust_bundle;
};

std::string WriteJoinFile(const JoinFile& file);
// The text of an error says what is wrong with it.
StatusOr<JoinFile> ReadJoinFile(const std::string& text);

// "2026-11-21T15:00:00Z"
std::string TimeText(TimePoint time);

}  // namespace rocegw::identity
