// SPDX-License-Identifier: Apache-2.0
// A packet capture that can be switched on and off while the gateway runs. Workers only append to a
// bounded buffer; a thread of the tap, alive during a capture, hands it to the sink, so that a slow
// reader costs captured packets and never the traffic. Frames get Ethernet, IP and UDP headers made
// up from what the port knows. Start and Stop: control thread. Encode and Commit: any worker.
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
  size_t max_bytes = 64U << 20;    // the capture ends by itself before it grows beyond
  size_t snap_length = 0;          // bytes kept of each frame; 0: all
  size_t buffer_bytes = 4U << 20;  // between the workers and the writing thread
  uint64_t max_packets = 0;        // 0: any number
  Duration duration;               // 0: until Stop
  // Of the file, in the order of their numbers.
  std::vector<std::string> interfaces = {"rocegw"};
  // On the capture's thread, when nothing more happens but Stop.
  std::function<void()> ended;
};

class CaptureTap {
 public:
  CaptureTap() = default;
  ~CaptureTap();
  CaptureTap(const CaptureTap&) = delete;
  CaptureTap& operator=(const CaptureTap&) = delete;

  // EBUSY until the capture before was stopped. The filter is what it is.
  Status Start(std::shared_ptr<CaptureSink> sink, const CaptureConfig& config);
  // Writes what is buffered and ends the capture, if it has not come to its end by itself; an empty
  // summary when none ran. Waits for the sink.
  CaptureSummary Stop();
  CaptureFilter& filter() { return filter_; }

  // Cheap: asked for every burst.
  bool active() const { return active_.load(std::memory_order_relaxed); }

  struct Packet {
    CaptureDirection direction = CaptureDirection::kInbound;
    uint32_t interface = 0;
    Qpn qpn;  // of the queue pair here
    wire::Path path;
    uint16_t ip_id = 0;
    std::span<const uint8_t> datagram;  // ICRC included
  };
  // One packet as a block for Commit; false: the filter does not want it.
  bool Encode(const Packet& packet, std::vector<uint8_t>& out) const;
  // Takes blocks that Encode made, `packets` of them; returns how many were kept: all or none.
  uint64_t Commit(std::span<const uint8_t> blocks, uint64_t packets);

 private:
  void WriteLoop();
  // Under the lock.
  void EndWith(CaptureEnd end);

  std::atomic<bool> active_{false};
  // Set before active_ is; a worker that saw active_ may read it.
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
