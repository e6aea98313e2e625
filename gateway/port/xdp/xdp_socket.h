// SPDX-License-Identifier: Apache-2.0
// AF_XDP socket of one receive queue of an interface, with its four rings. All sockets of a port
// use one packet memory. The worker of the queue receives; workers without a queue of their own
// send through another one's socket, under a lock.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/port/xdp/xdp_ring.h"

namespace rocegw::port {

// Chunk of packet memory: the largest that the kernel takes in ordinary pages.
inline constexpr size_t kXdpChunk = 4096;
// Bytes that the kernel leaves free in front of a received frame (XDP_PACKET_HEADROOM).
inline constexpr size_t kXdpHeadroom = 256;
// Flag of a descriptor whose frame goes on in the next one (XDP_PKT_CONTD of Linux 6.6).
inline constexpr uint32_t kXdpContinues = 1;

// Mapping that lasts until destruction.
class XdpMemory {
 public:
  XdpMemory() = default;
  XdpMemory(uint8_t* data, size_t size) : data_(data), size_(size) {}
  // Maps anonymous memory.
  static StatusOr<XdpMemory> Map(size_t bytes);
  XdpMemory(XdpMemory&& other) noexcept;
  XdpMemory& operator=(XdpMemory&& other) noexcept;
  XdpMemory(const XdpMemory&) = delete;
  XdpMemory& operator=(const XdpMemory&) = delete;
  ~XdpMemory();

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

struct XdpSocketConfig {
  unsigned interface_index = 0;
  std::string interface;
  uint32_t receive_queue = 0;
  const XdpMemory* memory = nullptr;
  int shared_with = -1;          // socket that has registered the memory; -1: this one registers it
  uint32_t receive_chunks = 0;   // bound of chunks that the kernel holds for received frames
  uint32_t transmit_chunks = 0;  // bound of chunks that are being sent
  bool several_chunks = true;    // frames may be longer than a chunk (Linux 6.6)
  bool copy = false;             // the kernel copies every frame, whatever the driver can
};

struct XdpRings {
  XdpRing<uint64_t> fill;        // addresses of free chunks, for the kernel to receive into
  XdpRing<uint64_t> completion;  // addresses of chunks that the kernel has sent
  XdpRing<xdp_desc> receive;
  XdpRing<xdp_desc> transmit;
};

class XdpSocket {
 public:
  // Opens the socket with its rings; no frame arrives before Bind.
  static StatusOr<std::unique_ptr<XdpSocket>> Open(const XdpSocketConfig& config);
  // EINVAL if the kernel does not know frames of several chunks. Waits up to 2 s for a queue that
  // another socket has, for the control thread at start.
  Status Bind(const XdpSocketConfig& config);

  int fd() const { return fd_.get(); }
  XdpRings& rings() { return rings_; }
  // Returns true if the interface's driver sends from and receives into the packet memory itself.
  bool zero_copy() const;
  // Returns how many frames the kernel dropped for lack of space or because of their length.
  uint64_t Dropped() const;

 private:
  XdpSocket() = default;
  Status MapRings(const XdpSocketConfig& config);
  template <typename Entry>
  Status MapRing(const XdpSocketConfig& config, int option, off_t page,
                 const xdp_ring_offset& offsets, uint32_t entries, XdpRing<Entry>& ring);

  UniqueFd fd_;
  std::vector<XdpMemory> mappings_;
  XdpRings rings_;
};

}  // namespace rocegw::port
