// SPDX-License-Identifier: Apache-2.0
// Connections of members by principal: their number is bounded, and a principal that has too many
// calls (open_calls.h) loses all of them and gets no other one for a while. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace rocegw::server {

class MemberConnections {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kExpelledFor{10};

  enum class Verdict : uint8_t { kAdded, kTooMany, kExpelled };

  explicit MemberConnections(size_t most) : most_(most) {}

  // `handed`, `cookie`: gRPC's descriptor and the cookie of its socket, which together show if the
  // connection still exists.
  Verdict Add(const std::string& principal, int handed, uint64_t cookie, Clock::time_point now);
  // Shuts down the connections of the principal. Returns how many there were.
  size_t Expel(const std::string& principal, Clock::time_point now);

 private:
  struct Member {
    int handed = -1;
    uint64_t cookie = 0;
  };

  const size_t most_;
  std::unordered_map<std::string, std::vector<Member>> members_;
  std::unordered_map<std::string, Clock::time_point> expelled_;  // until then
};

}  // namespace rocegw::server
