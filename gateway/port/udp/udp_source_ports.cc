// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/udp/udp_source_ports.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/port/steering.h"
#include "gateway/port/udp/udp_socket.h"

namespace rocegw::port {
namespace {

constexpr uint16_t kFirstPort = 0xC000;
constexpr unsigned kPathHashes = 256;

}  // namespace

UdpSourcePorts::UdpSourcePorts(size_t keep, uint16_t reserved, size_t send_buffer_bytes,
                               PortCounters& counters, OwnSourcePorts* own)
    : keep_(std::clamp<size_t>(keep, 1, kRange)),
      reserved_(reserved),
      send_buffer_bytes_(send_buffer_bytes),
      counters_(counters),
      own_(own),
      ipv4_(std::make_unique<Family>()),
      ipv6_(std::make_unique<Family>()) {
  ipv4_->entries.reserve(keep_);
  ipv6_->entries.reserve(keep_);
}

UdpSourcePorts::Socket UdpSourcePorts::Get(bool ipv4, uint16_t source_port) {
  Family& family = ipv4 ? *ipv4_ : *ipv6_;
  // Ports below the range belong to services.
  const auto index = static_cast<uint16_t>(source_port % kRange);
  uint16_t& position = family.entry_of[index];
  if (position == 0) {
    Entry& entry = FreeEntry(family);
    if (!Open(ipv4 ? AF_INET : AF_INET6, static_cast<uint16_t>(kFirstPort | index), entry)) {
      return {};
    }
    entry.index = index;
    position = static_cast<uint16_t>(&entry - family.entries.data() + 1);
  }
  Entry& entry = family.entries[position - 1U];
  entry.last_use = ++clock_;
  return {entry.fd.get(), entry.bound_port};
}

// Returns an entry without a socket; closes the oldest one if all are in use.
UdpSourcePorts::Entry& UdpSourcePorts::FreeEntry(Family& family) {
  for (Entry& entry : family.entries) {
    if (!entry.fd.valid()) return entry;
  }
  if (family.entries.size() < keep_) return family.entries.emplace_back();
  Entry& oldest =
      *std::min_element(family.entries.begin(), family.entries.end(),
                        [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
  family.entry_of[oldest.index] = 0;
  Close(oldest, &family == ipv4_.get());
  return oldest;
}

bool UdpSourcePorts::Open(int family, uint16_t source_port, Entry& entry) {
  for (unsigned step = 0; step < kPathHashes; ++step) {
    // The low six bits are the bucket and stay; the path hash above them changes.
    const unsigned moved = (source_port + step * kBuckets) % kRange;
    const auto port = static_cast<uint16_t>(kFirstPort | moved);
    if (port == reserved_) continue;
    auto opened = OpenTransmitSocket(family, port, send_buffer_bytes_);
    if (opened.ok()) {
      entry.fd = std::move(*opened);
      entry.bound_port = port;
      if (own_ != nullptr) own_->Add(family == AF_INET, port);
      counters_.tx_source_ports.Add();
      return true;
    }
    if (opened.status().error() != EADDRINUSE) return false;
  }
  return false;
}

void UdpSourcePorts::Close(Entry& entry, bool ipv4) {
  if (!entry.fd.valid()) return;
  entry.fd.Reset();
  if (own_ != nullptr) own_->Remove(ipv4, entry.bound_port);
}

void UdpSourcePorts::CloseAll() {
  for (Family* family : {ipv4_.get(), ipv6_.get()}) {
    for (Entry& entry : family->entries) Close(entry, family == ipv4_.get());
    family->entries.clear();
    family->entry_of.fill(0);
  }
}

}  // namespace rocegw::port
