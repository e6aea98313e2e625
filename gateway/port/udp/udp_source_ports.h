// SPDX-License-Identifier: Apache-2.0
// Transmit sockets of one queue, one per (address family, UDP source port), opened at first use and
// bounded in number: the least recently used one is closed for a new one. Programs of the host may
// hold source ports, all of them in the worst case. A flow whose port is taken gets another one of
// its bucket, then the bucket's reserved port, then the port of the receive socket. Belongs to one
// worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/base/unique_fd.h"
#include "gateway/port/port_counters.h"
#include "gateway/port/steering.h"
#include "gateway/port/udp/own_source_ports.h"
#include "gateway/port/udp/reserved_source_ports.h"

namespace rocegw::port {

struct SourcePortsConfig {
  size_t keep = 1;         // sockets per address family, at least 1
  uint16_t receiving = 0;  // receiving port, which no transmit socket may take packets from
  size_t send_buffer_bytes = 0;
  OwnSourcePorts* own = nullptr;                  // list of open ports; nullptr: no list
  const ReservedSourcePorts* reserved = nullptr;  // nullptr: none
};

class UdpSourcePorts {
 public:
  // The objects that `config` points to outlive this one.
  UdpSourcePorts(const SourcePortsConfig& config, PortCounters& counters);
  ~UdpSourcePorts() { CloseAll(); }
  UdpSourcePorts(const UdpSourcePorts&) = delete;
  UdpSourcePorts& operator=(const UdpSourcePorts&) = delete;

  struct Socket {
    int fd = -1;  // -1: opening failed, and no receive socket is set
    // Bound port. Usually the requested one; if another program holds it, another one of the same
    // bucket, so that receivers still steer and merge alike; at last the receiving port.
    uint16_t port = 0;
  };
  Socket Get(bool ipv4, uint16_t source_port);

  // Receive socket of the queue, which sends while no source port can be opened; -1: none.
  void SetReceiveSocket(int fd) { receive_socket_ = fd; }

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
    // Time of the next search for a free port of the bucket.
    std::array<TimePoint, kBuckets> search_at{};
  };

  Family& Of(bool ipv4) { return ipv4 ? *ipv4_ : *ipv6_; }
  Entry* Find(bool ipv4, uint16_t index);
  Entry* Search(bool ipv4, uint16_t index);
  Entry* Open(bool ipv4, uint16_t index, std::span<const uint16_t> candidates);
  Entry& FreeEntry(bool ipv4);
  void Close(Entry& entry, bool ipv4);

  const SourcePortsConfig config_;
  const size_t keep_;
  PortCounters& counters_;
  int receive_socket_ = -1;
  uint64_t clock_ = 0;
  std::unique_ptr<Family> ipv4_;
  std::unique_ptr<Family> ipv6_;
};

}  // namespace rocegw::port
