// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/udp/udp_source_ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/port/steering.h"
#include "gateway/port/udp/udp_socket.h"

namespace rocegw::port {
namespace {

constexpr uint16_t kFirstPort = 0xC000;
constexpr unsigned kPathHashes = 256;
constexpr Duration kTryAgain = Milliseconds(100);

TimePoint Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return TimePoint{int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

uint16_t BoundPort(int fd) {
  sockaddr_in6 name{};
  socklen_t length = sizeof name;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0) return 0;
  // The port has the same place in both families.
  return ntohs(name.sin6_port);
}

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
  const uint16_t position = family.entry_of[index];
  Entry* const entry = position != 0 ? &family.entries[position - 1U] : Add(ipv4, index);
  if (entry == nullptr) return AnyOf(ipv4);
  entry->last_use = ++clock_;
  return {entry->fd.get(), entry->bound_port};
}

// A bucket that other programs hold costs hundreds of system calls, so not at each packet.
UdpSourcePorts::Entry* UdpSourcePorts::Add(bool ipv4, uint16_t index) {
  Family& family = ipv4 ? *ipv4_ : *ipv6_;
  if (family.try_again != TimePoint{} && Now() < family.try_again) return nullptr;
  Entry opened;
  if (!Open(ipv4 ? AF_INET : AF_INET6, static_cast<uint16_t>(kFirstPort | index), opened)) {
    family.try_again = Now() + kTryAgain;
    return nullptr;
  }
  family.try_again = {};
  Close(family.any, ipv4);
  opened.index = index;
  Entry& entry = FreeEntry(family);
  entry = std::move(opened);
  family.entry_of[index] = static_cast<uint16_t>(&entry - family.entries.data() + 1);
  return &entry;
}

// Returns the socket that was used last, since its packets may leave together with others.
UdpSourcePorts::Socket UdpSourcePorts::AnyOf(bool ipv4) {
  Family& family = ipv4 ? *ipv4_ : *ipv6_;
  const auto last = std::ranges::max_element(
      family.entries, {}, [](const Entry& entry) { return entry.fd.valid() ? entry.last_use : 0; });
  if (last != family.entries.end() && last->fd.valid()) return {last->fd.get(), last->bound_port};
  Entry& any = family.any;
  if (!any.fd.valid()) {
    auto opened = OpenTransmitSocket(ipv4 ? AF_INET : AF_INET6, 0, send_buffer_bytes_);
    if (!opened.ok()) return {};
    any.fd = std::move(*opened);
    any.bound_port = BoundPort(any.fd.get());
    if (own_ != nullptr) own_->Add(ipv4, any.bound_port);
    counters_.tx_source_ports.Add();
  }
  return {any.fd.get(), any.bound_port};
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
    Close(family->any, family == ipv4_.get());
    family->try_again = {};
  }
}

}  // namespace rocegw::port
