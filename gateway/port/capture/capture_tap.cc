// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/capture/capture_tap.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "gateway/port/frame.h"

namespace rocegw::port {
namespace {

constexpr auto kWriteInterval = std::chrono::milliseconds(20);
// Sockets know no MAC addresses; these are locally administered and distinguish the two sides.
constexpr MacAddress kHere{0x02, 0, 0, 0, 0, 0x01};
constexpr MacAddress kThere{0x02, 0, 0, 0, 0, 0x02};

int64_t WallClockNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

CaptureTap::~CaptureTap() { (void)Stop(); }

Status CaptureTap::Start(std::shared_ptr<CaptureSink> sink, const CaptureConfig& config) {
  if (writer_.joinable()) {
    return {EBUSY, "a capture is running already; stop it first"};
  }
  config_ = config;
  summary_ = {};
  ending_ = false;
  deadline_ = config.duration == Duration()
                  ? std::chrono::steady_clock::time_point::max()
                  : std::chrono::steady_clock::now() + std::chrono::nanoseconds(config.duration.ns);
  sink_ = std::move(sink);
  buffer_.clear();
  buffer_.reserve(config_.buffer_bytes);
  AppendPcapngSection(buffer_);
  for (const std::string& name : config_.interfaces)
    AppendPcapngInterface(name, config_.snap_length, buffer_);
  summary_.bytes = buffer_.size();
  snap_length_.store(config_.snap_length, std::memory_order_relaxed);
  // Set before the thread starts, since the thread may end the capture at once.
  active_.store(true, std::memory_order_release);
  // The new thread inherits a full signal mask: the main thread handles signals.
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  writer_ = std::thread([this] { WriteLoop(); });
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return OkStatus();
}

CaptureSummary CaptureTap::Stop() {
  if (!writer_.joinable()) return {};
  {
    const std::lock_guard lock(mutex_);
    EndWith(CaptureEnd::kStopped);
  }
  writer_.join();
  sink_.reset();
  config_.ended = {};
  return std::exchange(summary_, {});
}

void CaptureTap::EndWith(CaptureEnd end) {
  if (ending_) return;
  ending_ = true;
  summary_.end = end;
  active_.store(false, std::memory_order_relaxed);
  changed_.notify_one();
}

bool CaptureTap::Encode(const Packet& packet, std::vector<uint8_t>& out) const {
  const bool outbound = packet.direction == CaptureDirection::kOutbound;
  const wire::Path& path = packet.path;
  if (!filter_.Wants({.qpn = packet.qpn,
                      .here = outbound ? path.source : path.destination,
                      .there = outbound ? path.destination : path.source})) {
    return false;
  }
  std::array<uint8_t, kEthernetHeaderLength + kMaxIpUdpLength> headers;
  WriteEthernet(outbound ? kThere : kHere, outbound ? kHere : kThere,
                packet.path.destination.IsV4() ? kEtherTypeIpv4 : kEtherTypeIpv6, headers.data());
  const size_t header_length =
      kEthernetHeaderLength + WriteIpUdp(packet.path, packet.ip_id, packet.datagram.size(),
                                         headers.data() + kEthernetHeaderLength);
  if (!packet.path.destination.IsV4()) {
    // IPv6 dissectors report a zero checksum as an error.
    uint8_t* udp = headers.data() + header_length - kUdpHeaderLength;
    const uint16_t checksum = UdpChecksum(packet.path, {udp, kUdpHeaderLength}, packet.datagram);
    udp[6] = static_cast<uint8_t>(checksum >> 8);
    udp[7] = static_cast<uint8_t>(checksum);
  }
  const size_t whole = header_length + packet.datagram.size();
  const size_t snap = snap_length_.load(std::memory_order_relaxed);
  const size_t kept = snap == 0 ? whole : std::min(snap, whole);
  const size_t kept_headers = std::min(header_length, kept);
  AppendPcapngPacket({.interface = packet.interface,
                      .time_ns = WallClockNs(),
                      .direction = packet.direction,
                      .original_length = whole,
                      .headers = std::span(headers).first(kept_headers),
                      .payload = packet.datagram.first(kept - kept_headers)},
                     out);
  return true;
}

uint64_t CaptureTap::Commit(std::span<const uint8_t> blocks, uint64_t packets) {
  if (packets == 0) return 0;
  const std::lock_guard lock(mutex_);
  if (ending_) return 0;
  if (config_.max_packets != 0 && summary_.packets + packets > config_.max_packets) {
    // Keeps as many packets of the burst as fit.
    size_t end = 0;
    for (packets = config_.max_packets - summary_.packets; packets > 0; --packets)
      end += PcapngBlockLength(blocks.subspan(end));
    blocks = blocks.first(end);
    packets = config_.max_packets - summary_.packets;
  }
  if (summary_.bytes + blocks.size() > config_.max_bytes) {
    EndWith(CaptureEnd::kBytes);
    return 0;
  }
  if (buffer_.size() + blocks.size() > config_.buffer_bytes) {
    summary_.missed += packets;
    return 0;
  }
  buffer_.insert(buffer_.end(), blocks.begin(), blocks.end());
  summary_.bytes += blocks.size();
  summary_.packets += packets;
  if (summary_.packets == config_.max_packets) EndWith(CaptureEnd::kPackets);
  return packets;
}

void CaptureTap::WriteLoop() {
  std::vector<uint8_t> writing;
  writing.reserve(config_.buffer_bytes);
  bool last = false;
  while (!last) {
    {
      std::unique_lock lock(mutex_);
      const auto wake = std::min(deadline_, std::chrono::steady_clock::now() + kWriteInterval);
      changed_.wait_until(lock, wake, [this] { return ending_; });
      if (std::chrono::steady_clock::now() >= deadline_) EndWith(CaptureEnd::kDuration);
      last = ending_;
      std::swap(writing, buffer_);
    }
    if (writing.empty()) continue;
    Status status = sink_->Write(writing);
    writing.clear();
    if (status.ok()) continue;
    const std::lock_guard lock(mutex_);
    EndWith(CaptureEnd::kFailed);
    summary_.end = CaptureEnd::kFailed;
    summary_.write_status = std::move(status);
    last = true;
  }
  sink_->End(summary_);
  if (config_.ended) config_.ended();
}

}  // namespace rocegw::port
