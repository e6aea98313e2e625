// SPDX-License-Identifier: Apache-2.0
// Slots of the strangers that gRPC serves at the same time. A slot is taken when a connection is
// passed to gRPC. After its end the slot stays taken until gRPC has closed its descriptor, which is
// when gRPC has released the memory of the streams.
//
// Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace rocegw::server {

// Returns a number that no other socket of this host has; 0: not an open socket.
uint64_t SocketCookie(int fd);

class HandOffSlots {
 public:
  using Clock = std::chrono::steady_clock;
  // Upper limit of the wait for gRPC. It keeps slots from being lost should gRPC keep a descriptor.
  static constexpr std::chrono::seconds kMostSettling{10};

  HandOffSlots(size_t most, size_t most_per_source)
      : most_(most), most_per_source_(most_per_source) {}

  bool HasRoomFor(const std::string& source) const;
  size_t TakenBy(const std::string& source) const;
  size_t taken() const { return taken_; }
  // Returns the number of slots that will be free once gRPC has closed its descriptors.
  size_t settling() const { return settling_.size(); }

  void Take(const std::string& source);
  void Release(const std::string& source);
  // Releases the slot once gRPC has closed this descriptor.
  void ReleaseAfter(const std::string& source, int handed, uint64_t cookie, Clock::time_point now);
  // Releases the slots whose descriptor is closed.
  void ReleaseSettled(Clock::time_point now);

 private:
  struct Settling {
    std::string source;
    int handed = -1;
    uint64_t cookie = 0;
    Clock::time_point deadline;
  };

  const size_t most_;
  const size_t most_per_source_;
  size_t taken_ = 0;
  std::unordered_map<std::string, size_t> by_source_;
  std::vector<Settling> settling_;
};

}  // namespace rocegw::server
