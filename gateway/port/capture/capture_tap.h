// SPDX-License-Identifier: Apache-2.0
// Packet capture that starts and stops while the gateway runs. Workers only append to a bounded
// buffer. A thread of the tap passes it to the sink, so a slow reader loses captured packets and
// never delays traffic. Frames get Ethernet, IP and UDP headers synthesised from what the port
// knows. Start and Stop: control thread. Encode and Commit: any worker.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/port/capture/capture_filter.h"
#include "gateway/port/capture/capture_sink.h"
#include "gateway/port/capture/pcapng.h"
#include "gateway/wire/datagram.h"

namespace rocegw::port {

struct CaptureConfig {
  size_t max_bytes = 64U << 20;    // the capture ends before the file grows beyond
  size_t snap_length = 0;          // bytes kept of each frame; 0: all
  size_t buffer_bytes = 4U << 20;  // buffer between the workers and the writing thread
  uint64_t max_packets = 0;        // 0: any number
  Duration duration;               // 0: until Stop
  // Interface names of the file, by number.
  std::vector<std::string> interfaces = {"rocegw"};
  // Called on the capture's thread when the capture has ended; only Stop remains.
  std::function<void()> ended;
};

class CaptureTap {
 public:
  CaptureTap() = default;
  ~CaptureTap();
  CaptureTap(const CaptureTap&) = delete;
  CaptureTap& operator=(const CaptureTap&) = delete;

  // Starts a capture. EBUSY until the previous capture was stopped. The filter is not changed.
  Status Start(std::shared_ptr<CaptureSink> sink, const CaptureConfig& config);
  // Ends the capture, if it did not end by itself, and writes the buffered packets. Returns an
  // empty summary if none ran. Waits for the sink.
  CaptureSummary Stop();
  CaptureFilter& filter() { return filter_; }

  // Returns true during a capture. Cheap: called for every burst.
  bool active() const { return active_.load(std::memory_order_relaxed); }

  struct Packet {
    CaptureDirection direction = CaptureDirection::kInbound;
    uint32_t interface = 0;
    Qpn qpn;  // the local queue pair
    wire::Path path;
    uint16_t ip_id = 0;
    std::span<const uint8_t> datagram;  // with ICRC
  };
  // Encodes a packet as a block for Commit. Returns false if the filter rejects it.
  bool Encode(const Packet& packet, std::vector<uint8_t>& out) const;
  // Stores `packets` blocks of Encode. Returns how many were kept: all or none.
  uint64_t Commit(std::span<const uint8_t> blocks, uint64_t packets);

 private:
  void WriteLoop();
  // Requires the lock.
  void EndWith(CaptureEnd end);

  std::atomic<bool> active_{false};
  // Set before active_; a worker that saw active_ may read it.
  std::atomic<size_t> snap_length_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  CaptureConfig config_;
  std::vector<uint8_t> buffer_;
  CaptureSummary summary_;
  bool ending_ = false;
  std::chrono::steady_clock::time_point deadline_;
  std::shared_ptr<CaptureSink> sink_;
  CaptureFilter filter_;
  std::thread writer_;
};

}  // namespace rocegw::port
