// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/capture_tap.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "gateway/port/frame.h"

namespace rocegw::port {
namespace {

constexpr auto kWriteInterval = std::chrono::milliseconds(20);
// Sockets know no MAC addresses; these are locally administered and tell the sides apart.
constexpr MacAddress kHere{0x02, 0, 0, 0, 0, 0x01};
constexpr MacAddress kThere{0x02, 0, 0, 0, 0, 0x02};

int64_t WallClockNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// 0 or an errno.
int WriteAll(int fd, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace

CaptureTap::~CaptureTap() { (void)Stop(); }

Status CaptureTap::Start(UniqueFd fd, const CaptureConfig& config) {
  if (writer_.joinable()) {
    return {EBUSY, "a capture is running already; stop it first"};
  }
  config_ = config;
  summary_ = {};
  stopping_ = false;
  fd_ = std::move(fd);
  buffer_.clear();
  buffer_.reserve(config_.buffer_bytes);
  AppendPcapngSection(buffer_);
  AppendPcapngInterface("rocegw", config_.snap_length, buffer_);
  summary_.bytes = buffer_.size();
  snap_length_.store(config_.snap_length, std::memory_order_relaxed);
  // The new thread inherits a full signal mask: signals are the main thread's business.
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  writer_ = std::thread([this] { WriteLoop(); });
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  active_.store(true, std::memory_order_release);
  return OkStatus();
}

CaptureSummary CaptureTap::Stop() {
  if (!writer_.joinable()) return {};
  active_.store(false, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  writer_.join();
  fd_.Reset();
  return std::exchange(summary_, {});
}

void CaptureTap::Encode(const Packet& packet, std::vector<uint8_t>& out) const {
  const bool outbound = packet.direction == CaptureDirection::kOutbound;
  std::array<uint8_t, kEthernetHeaderLength + kMaxIpUdpLength> headers;
  WriteEthernet(outbound ? kThere : kHere, outbound ? kHere : kThere,
                packet.path.destination.IsV4() ? kEtherTypeIpv4 : kEtherTypeIpv6, headers.data());
  const size_t header_length =
      kEthernetHeaderLength + WriteIpUdp(packet.path, packet.ip_id, packet.datagram.size(),
                                         headers.data() + kEthernetHeaderLength);
  if (!packet.path.destination.IsV4()) {
    // IPv6 dissectors take a zero checksum for an error.
    uint8_t* udp = headers.data() + header_length - kUdpHeaderLength;
    const uint16_t checksum = UdpChecksum(packet.path, {udp, kUdpHeaderLength}, packet.datagram);
    udp[6] = static_cast<uint8_t>(checksum >> 8);
    udp[7] = static_cast<uint8_t>(checksum);
  }
  const size_t whole = header_length + packet.datagram.size();
  const size_t snap = snap_length_.load(std::memory_order_relaxed);
  const size_t kept = snap == 0 ? whole : std::min(snap, whole);
  const size_t kept_headers = std::min(header_length, kept);
  AppendPcapngPacket({.interface = 0,
                      .time_ns = WallClockNs(),
                      .direction = packet.direction,
                      .original_length = whole,
                      .headers = std::span(headers).first(kept_headers),
                      .payload = packet.datagram.first(kept - kept_headers)},
                     out);
}

uint64_t CaptureTap::Commit(std::span<const uint8_t> blocks, uint64_t packets) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || summary_.full) return 0;
  if (summary_.bytes + blocks.size() > config_.max_bytes) {
    summary_.full = true;
    active_.store(false, std::memory_order_relaxed);
    return 0;
  }
  if (buffer_.size() + blocks.size() > config_.buffer_bytes) {
    summary_.missed += packets;
    return 0;
  }
  buffer_.insert(buffer_.end(), blocks.begin(), blocks.end());
  summary_.bytes += blocks.size();
  summary_.packets += packets;
  return packets;
}

void CaptureTap::WriteLoop() {
  std::vector<uint8_t> writing;
  writing.reserve(config_.buffer_bytes);
  bool last = false;
  while (!last) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kWriteInterval, [this] { return stopping_; });
      last = stopping_;
      std::swap(writing, buffer_);
    }
    const int error = WriteAll(fd_.get(), writing);
    writing.clear();
    if (error == 0) continue;
    const std::lock_guard lock(mutex_);
    summary_.write_status = {error, std::string("writing the capture failed: ") + strerror(error)};
    summary_.full = true;
    active_.store(false, std::memory_order_relaxed);
  }
}

}  // namespace rocegw::port
