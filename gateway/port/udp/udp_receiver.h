// SPDX-License-Identifier: Apache-2.0
// Receiving side of a udp port queue: recvmmsg(2) into 64 KiB buffers. Buffers merged by receive
// offload are split into datagrams, whose bytes stay in place. The IPv4 ID is not visible here.
// Belongs to one worker.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gateway/port/port_counters.h"
#include "gateway/port/udp/own_source_ports.h"
#include "gateway/wire/datagram.h"

namespace rocegw::port {

// Metadata of one received message.
struct UdpMessage {
  wire::RxMeta meta;
  size_t segment = 0;     // bytes of each merged datagram except the last; 0: one datagram
  uint32_t overflow = 0;  // packets that the socket has dropped so far, if known
  bool loopback = false;  // arrived over the loopback interface
};

// Parses addresses and control messages of this port's receive sockets. Pure.
UdpMessage ParseMessage(const msghdr& message);

class UdpReceiver {
 public:
  // `own_ports`: drops packets of this host whose source port is not listed; outlives this object;
  // nullptr: accepts them.
  UdpReceiver(size_t buffers, PortCounters& counters, const OwnSourcePorts* own_ports = nullptr);

  // `fd` is a non-blocking socket; the returned bytes are valid until the next call.
  size_t Receive(int fd, std::span<wire::RxDatagram> into);

  // Discards what was received and not returned yet.
  void Reset();
  // The socket has received for another process: overflows that it has counted so far are not
  // counted again.
  void ContinueSocket() { overflow_known_ = false; }
  // While the kernel filters, what the socket counts as dropped is taken for the filter's.
  void SetFiltered(bool filtered) { filtered_ = filtered; }

 private:
  static constexpr size_t kBufferBytes = 65536;
  static constexpr size_t kControl = 256;
  struct alignas(cmsghdr) Control {
    uint8_t bytes[kControl];
  };

  bool Refill(int fd);
  bool OpenMessage();
  bool IsForeignLoopback() const;

  std::unique_ptr<uint8_t[]> bytes_;
  std::vector<sockaddr_storage> names_;
  std::vector<Control> controls_;
  std::vector<iovec> vectors_;
  std::vector<mmsghdr> messages_;
  size_t received_ = 0;  // messages of the last recvmmsg
  size_t next_ = 0;      // first of them that is not opened yet
  UdpMessage current_;
  std::span<const uint8_t> rest_;  // rest of the open message
  bool open_ = false;
  uint32_t last_overflow_ = 0;
  bool overflow_known_ = true;  // last_overflow_ is this socket's
  bool filtered_ = false;
  PortCounters& counters_;
  const OwnSourcePorts* const own_ports_;
};

}  // namespace rocegw::port
