// SPDX-License-Identifier: Apache-2.0
// Number of calls that each principal has in progress, from the headers of a call on. gRPC takes 10
// to 25 KiB for a stream of 15 bytes, accepts any number of streams from a client that does not
// acknowledge its SETTINGS, and runs no handler before the first message is complete: a certificate
// alone must not be worth the memory of the process.
//
// A call that ends before its handler runs, and a call of a method that does not exist, is counted
// on: gRPC reports neither. A principal that has made too many of these loses its connections once.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace rocegw::server {

class OpenCalls {
 public:
  explicit OpenCalls(size_t most) : most_(most) {}

  // Counts a call. Returns false if the principal has too many; its count then begins anew.
  bool Begin(const std::string& principal);
  // Returns the number of times that the principal's count has begun anew, for End.
  uint64_t Generation(const std::string& principal);
  // Ends the counting of a call that began in this generation.
  void End(const std::string& principal, uint64_t generation);

  size_t of(const std::string& principal) const;

 private:
  struct Count {
    size_t calls = 0;
    uint64_t generation = 0;
  };

  const size_t most_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Count> counts_;  // the authority bounds the principals
};

}  // namespace rocegw::server
