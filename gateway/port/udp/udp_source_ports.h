// SPDX-License-Identifier: Apache-2.0
// Transmit sockets of one queue, one per (address family, UDP source port), opened at first use and
// bounded in number: the least recently used one is closed for a new one. Any user of the host may
// bind all ports of the range, so packets without a socket of their own leave by another one.
// Belongs to one worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/base/unique_fd.h"
#include "gateway/port/port_counters.h"
#include "gateway/port/udp/own_source_ports.h"

namespace rocegw::port {

class UdpSourcePorts {
 public:
  // `keep`: sockets per address family, at least 1. `reserved`: the receiving port, which must not
  // be bound here, since that would take packets from the receivers. `own`: list of open ports;
  // outlives this object; nullptr: no list.
  UdpSourcePorts(size_t keep, uint16_t reserved, size_t send_buffer_bytes, PortCounters& counters,
                 OwnSourcePorts* own);
  ~UdpSourcePorts() { CloseAll(); }
  UdpSourcePorts(const UdpSourcePorts&) = delete;
  UdpSourcePorts& operator=(const UdpSourcePorts&) = delete;

  struct Socket {
    int fd = -1;  // -1: opening failed
    // Bound port. Usually the requested one; if another program holds it, another one of the same
    // bucket, so that receivers still steer and merge alike. If other programs hold the whole
    // bucket, the port of any open socket, else one that the system chooses.
    uint16_t port = 0;
  };
  Socket Get(bool ipv4, uint16_t source_port);

  void CloseAll();

 private:
  static constexpr size_t kRange = 0x4000;  // 0xC000 to 0xFFFF
  struct Entry {
    UniqueFd fd;
    uint16_t bound_port = 0;
    uint16_t index = 0;
    uint64_t last_use = 0;
  };
  struct Family {
    std::vector<Entry> entries;
    std::array<uint16_t, kRange> entry_of{};  // position in `entries` plus 1; 0: none
    TimePoint try_again{};                    // after a failure
    Entry any;                                // bound to any port, used while `entries` has none
  };

  // Opens a socket for a port of the range. Returns its entry; nullptr: none could be opened.
  Entry* Add(bool ipv4, uint16_t index);
  bool Open(int family, uint16_t source_port, Entry& entry);
  Socket AnyOf(bool ipv4);
  Entry& FreeEntry(Family& family);
  void Close(Entry& entry, bool ipv4);

  const size_t keep_;
  const uint16_t reserved_;
  const size_t send_buffer_bytes_;
  PortCounters& counters_;
  OwnSourcePorts* const own_;
  uint64_t clock_ = 0;
  std::unique_ptr<Family> ipv4_;
  std::unique_ptr<Family> ipv6_;
};

}  // namespace rocegw::port
