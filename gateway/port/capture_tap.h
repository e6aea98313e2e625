// SPDX-License-Identifier: Apache-2.0
// A packet capture that can be switched on and off while the gateway runs. Workers only append to a
// bounded buffer; a thread of the tap, alive during a capture, writes it to the descriptor, so that
// a slow disk costs captured packets and never the traffic. Frames get Ethernet, IP and UDP headers
// made up from what the port knows. Start and Stop: control thread. Record: any worker.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/port/pcapng.h"
#include "gateway/wire/datagram.h"

namespace rocegw::port {

struct CaptureConfig {
  size_t max_bytes = 64U << 20;    // the capture ends by itself before it grows beyond
  size_t snap_length = 0;          // bytes kept of each frame; 0: all
  size_t buffer_bytes = 4U << 20;  // between the workers and the writing thread
};

struct CaptureSummary {
  uint64_t packets = 0;  // written
  uint64_t missed = 0;   // the buffer was full
  uint64_t bytes = 0;    // of the file
  bool full = false;     // max_bytes reached: everything after is missing
  Status write_status;   // of the descriptor
};

class CaptureTap {
 public:
  CaptureTap() = default;
  ~CaptureTap();
  CaptureTap(const CaptureTap&) = delete;
  CaptureTap& operator=(const CaptureTap&) = delete;

  // EBUSY while a capture runs. The descriptor should block; it is closed at the end.
  Status Start(UniqueFd fd, const CaptureConfig& config);
  // Writes what is buffered and ends the capture; an empty summary when none ran.
  CaptureSummary Stop();

  // Cheap: asked for every burst.
  bool active() const { return active_.load(std::memory_order_relaxed); }

  struct Packet {
    CaptureDirection direction = CaptureDirection::kInbound;
    wire::Path path;
    uint16_t ip_id = 0;
    std::span<const uint8_t> datagram;  // ICRC included
  };
  // One packet as a block for Commit.
  void Encode(const Packet& packet, std::vector<uint8_t>& out) const;
  // Takes blocks that Encode made, `packets` of them; returns how many were kept: all or none.
  uint64_t Commit(std::span<const uint8_t> blocks, uint64_t packets);

 private:
  void WriteLoop();

  std::atomic<bool> active_{false};
  // Set before active_ is; a worker that saw active_ may read it.
  std::atomic<size_t> snap_length_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  CaptureConfig config_;
  std::vector<uint8_t> buffer_;
  CaptureSummary summary_;
  bool stopping_ = false;
  UniqueFd fd_;
  std::thread writer_;
};

}  // namespace rocegw::port
