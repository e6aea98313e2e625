// SPDX-License-Identifier: Apache-2.0
// Transmit side of one AF_XDP socket. One worker uses it without a lock; several workers, where an
// interface has fewer queues than the port has workers, use it under its lock. The transmit chunks
// of a worker lie together in packet memory, so a completed chunk's address names its worker.
#pragma once

#include <linux/if_xdp.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "gateway/port/xdp/xdp_socket.h"

namespace rocegw::port {

struct XdpTransmitLayout {
  uint64_t begin = 0;             // address of the first worker's transmit chunks
  uint64_t bytes_per_worker = 0;  // the workers' chunks follow one another
  size_t workers = 0;
};

class XdpTransmitter {
 public:
  XdpTransmitter(XdpSocket& socket, const XdpTransmitLayout& layout, bool shared);

  // Queues descriptors of whole frames as far as the ring has space; returns how many it took.
  size_t Submit(std::span<const xdp_desc> descriptors);

  enum class Sent : uint8_t {
    kNothing,  // no frame was queued
    kAll,      // every queued frame is the kernel's
    kPart,     // the kernel has no space for the rest now
  };
  // Makes the kernel send what is queued.
  Sent Kick();

  // Appends the addresses of the worker's chunks that were sent since the last call.
  void Reclaim(size_t worker, std::vector<uint64_t>& sent);

 private:
  std::unique_lock<std::mutex> Lock();

  XdpSocket& socket_;
  const XdpTransmitLayout layout_;
  const bool shared_;
  const bool zero_copy_;
  std::mutex mutex_;
  std::vector<std::vector<uint64_t>> sent_;  // shared: completed chunks by worker
};

}  // namespace rocegw::port
