// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/udp/udp_source_ports.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "gateway/base/timing/monotonic_clock.h"
#include "gateway/port/udp/udp_socket.h"

namespace rocegw::port {
namespace {

constexpr uint16_t kFirstPort = 0xC000;
// Ports of a bucket that are tried for a flow: beside ordinary programs one of a few is free, and
// beside a program that takes all of them a search must stay cheap.
constexpr size_t kCandidates = 16;
constexpr Duration kSearchAgain = Seconds(1);

}  // namespace

UdpSourcePorts::UdpSourcePorts(const SourcePortsConfig& config, PortCounters& counters)
    : config_(config),
      keep_(std::clamp<size_t>(config.keep, 1, kRange)),
      counters_(counters),
      ipv4_(std::make_unique<Family>()),
      ipv6_(std::make_unique<Family>()) {
  ipv4_->entries.reserve(keep_);
  ipv6_->entries.reserve(keep_);
}

UdpSourcePorts::Socket UdpSourcePorts::Get(bool ipv4, uint16_t source_port) {
  // Ports below the range belong to services.
  const auto index = static_cast<uint16_t>(source_port % kRange);
  Entry* entry = Find(ipv4, index);
  if (entry == nullptr) entry = Search(ipv4, index);
  if (entry == nullptr) return {receive_socket_, config_.receiving};
  entry->last_use = ++clock_;
  return {entry->fd.get(), entry->bound_port};
}

UdpSourcePorts::Entry* UdpSourcePorts::Find(bool ipv4, uint16_t index) {
  Family& family = Of(ipv4);
  const uint16_t position = family.entry_of[index];
  return position == 0 ? nullptr : &family.entries[position - 1U];
}

// Opens a socket for the flow. While the flow's bucket has no free port, returns the socket of its
// reserved port. Returns nullptr if there is none either.
UdpSourcePorts::Entry* UdpSourcePorts::Search(bool ipv4, uint16_t index) {
  const uint8_t bucket = index % kBuckets;
  TimePoint& search_at = Of(ipv4).search_at[bucket];
  const TimePoint now = MonotonicNow();
  const uint16_t reserved = config_.reserved == nullptr ? 0 : config_.reserved->Of(bucket);
  if (now >= search_at) {
    std::array<uint16_t, kCandidates> candidates;
    size_t count = 0;
    for (size_t step = 0; step < kCandidates; ++step) {
      // The low six bits are the bucket and stay; the path hash above them changes.
      const auto port = static_cast<uint16_t>(kFirstPort | (index + step * kBuckets) % kRange);
      if (port != config_.receiving) candidates[count++] = port;
    }
    Entry* const opened = Open(ipv4, index, std::span(candidates).first(count));
    if (opened != nullptr) return opened;
    counters_.tx_source_ports_taken.Add();
    search_at = now + kSearchAgain;
    if (reserved != 0 && Find(ipv4, reserved % kRange) == nullptr)
      (void)Open(ipv4, reserved % kRange, std::span(&reserved, 1));
  }
  return reserved == 0 ? nullptr : Find(ipv4, reserved % kRange);
}

// Returns an entry without a socket; closes the oldest one if all are in use.
UdpSourcePorts::Entry& UdpSourcePorts::FreeEntry(bool ipv4) {
  Family& family = Of(ipv4);
  for (Entry& entry : family.entries) {
    if (!entry.fd.valid()) return entry;
  }
  if (family.entries.size() < keep_) return family.entries.emplace_back();
  Entry& oldest =
      *std::min_element(family.entries.begin(), family.entries.end(),
                        [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
  family.entry_of[oldest.index] = 0;
  Close(oldest, ipv4);
  return oldest;
}

UdpSourcePorts::Entry* UdpSourcePorts::Open(bool ipv4, uint16_t index,
                                            std::span<const uint16_t> candidates) {
  auto opened =
      OpenTransmitSocket(ipv4 ? AF_INET : AF_INET6, candidates, config_.send_buffer_bytes);
  if (!opened.ok()) return nullptr;
  // Only now an older flow loses its socket.
  Entry& entry = FreeEntry(ipv4);
  entry.fd = std::move(opened->fd);
  entry.bound_port = opened->port;
  entry.index = index;
  Family& family = Of(ipv4);
  family.entry_of[index] = static_cast<uint16_t>(&entry - family.entries.data() + 1);
  if (config_.own != nullptr) config_.own->Add(ipv4, entry.bound_port);
  counters_.tx_source_ports.Add();
  return &entry;
}

void UdpSourcePorts::Close(Entry& entry, bool ipv4) {
  if (!entry.fd.valid()) return;
  entry.fd.Reset();
  if (config_.own != nullptr) config_.own->Remove(ipv4, entry.bound_port);
}

void UdpSourcePorts::CloseAll() {
  for (const bool ipv4 : {true, false}) {
    Family& family = Of(ipv4);
    for (Entry& entry : family.entries) Close(entry, ipv4);
    family.entries.clear();
    family.entry_of.fill(0);
    family.search_at.fill({});
  }
}

}  // namespace rocegw::port
