// SPDX-License-Identifier: Apache-2.0
// Server of the transmission phase of NBD on one socket: what the kernel's nbd driver asks of a
// socket that it was given. One thread reads requests; replies are sent by whatever thread
// completes a transfer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "gateway/base/status.h"
#include "gateway/far/files/space.h"

namespace rocegw::far {

class Transmission {
 public:
  struct Counts {
    uint64_t reads = 0, read_bytes = 0, writes = 0, written_bytes = 0, flushes = 0;
    uint64_t failed = 0;
  };
  // Flags of NBD that tell a client what is served: flush and FUA.
  static constexpr uint32_t kFlags = 1 | 4 | 8;

  // Serves [0, size) of the space, which outlives this object, on a stream socket.
  Transmission(Space& space, uint64_t size, int socket);
  // Serves until the client disconnects, and all transfers have ended. An error is one of the
  // socket, or a request that is none.
  Status Run();
  Counts GetCounts();

 private:
  struct Request;

  Status Serve();
  int Read(void* to, uint64_t bytes) const;
  void Start(Request* request);
  static void OnDone(void* argument, int status);
  void Reply(const Request& request, int status);

  Space& space_;
  const uint64_t size_;
  const int socket_;
  std::mutex send_mutex_;  // replies are whole
  std::mutex mutex_;       // guards the following
  std::condition_variable less_;
  uint64_t in_flight_ = 0;  // bytes
  uint64_t requests_ = 0;
  Counts counts_;
};

}  // namespace rocegw::far
