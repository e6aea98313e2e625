// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/xdp/xdp_transmitter.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace rocegw::port {
namespace {

// Calls per Kick: the kernel sends about 32 frames in each.
constexpr int kMostCalls = 64;

}  // namespace

XdpTransmitter::XdpTransmitter(XdpSocket& socket, const XdpTransmitLayout& layout, bool shared)
    : socket_(socket),
      layout_(layout),
      shared_(shared),
      zero_copy_(socket.zero_copy()),
      sent_(shared ? layout.workers : 0) {}

std::unique_lock<std::mutex> XdpTransmitter::Lock() {
  return shared_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
}

size_t XdpTransmitter::Submit(std::span<const xdp_desc> descriptors) {
  const auto lock = Lock();
  XdpRing<xdp_desc>& ring = socket_.rings().transmit;
  size_t count = std::min<size_t>(descriptors.size(), ring.Space());
  while (count != 0 && (descriptors[count - 1].options & kXdpContinues) != 0) --count;
  for (const xdp_desc& descriptor : descriptors.first(count)) ring.Put(descriptor);
  if (count != 0) ring.Publish();
  return count;
}

XdpTransmitter::Sent XdpTransmitter::Kick() {
  const auto lock = Lock();
  XdpRing<xdp_desc>& ring = socket_.rings().transmit;
  uint32_t left = ring.Untaken();
  if (left == 0) return Sent::kNothing;
  for (int calls = 0; calls < kMostCalls && left != 0 && ring.needs_wakeup(); ++calls) {
    const bool sent = ::sendto(socket_.fd(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) == 0;
    // The driver sends by itself from now on.
    if (sent && zero_copy_) return Sent::kAll;
    // The interface is down: the frames leave when it is up again, or never.
    if (!sent && (errno == ENETDOWN || errno == ENXIO)) return Sent::kAll;
    const uint32_t before = left;
    left = ring.Untaken();
    if (left == before) return Sent::kPart;
  }
  return left == 0 || !ring.needs_wakeup() ? Sent::kAll : Sent::kPart;
}

void XdpTransmitter::Reclaim(size_t worker, std::vector<uint64_t>& sent) {
  const auto lock = Lock();
  XdpRing<uint64_t>& ring = socket_.rings().completion;
  const uint32_t count = ring.Available();
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t address = ring.Peek(i);
    const uint64_t owner = (address - layout_.begin) / layout_.bytes_per_worker;
    if (!shared_) {
      sent.push_back(address);
    } else if (owner < sent_.size()) {
      sent_[owner].push_back(address);
    }
  }
  if (count != 0) ring.Release(count);
  if (!shared_) return;
  sent.insert(sent.end(), sent_[worker].begin(), sent_[worker].end());
  sent_[worker].clear();
}

}  // namespace rocegw::port
