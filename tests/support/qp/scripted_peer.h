// SPDX-License-Identifier: Apache-2.0
// A queue pair under test opposite a peer that is written by hand: packets are built field by
// field, what the queue pair sends comes back decoded, and time moves when the test says so. The
// peer takes no part of its own, so every event is one call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/support/qp/qp_host.h"

namespace rocegw::testing {

// A packet that the queue pair sent.
struct SentPacket {
  wire::Headers headers;
  std::vector<uint8_t> payload;
  uint8_t traffic_class = 0;
  wire::Gid destination{};

  wire::Opcode opcode() const { return headers.bth.opcode; }
  uint32_t psn() const { return headers.bth.psn.value; }
  uint8_t syndrome() const { return headers.aeth.syndrome; }
};

// What the queue pair sent since the last call.
std::vector<SentPacket> TakeSent(QpHost& host);

class ScriptedPeer {
 public:
  static constexpr uint32_t kQpn = 0x40022;
  static constexpr uint32_t kHostPsn = 1000;  // first of the queue pair's requests
  static constexpr uint32_t kPeerPsn = 5000;  // first of the peer's

  struct Options {
    QpHost::Options host;
    verbs::QpAttributes limits = QpHost::DefaultLimits();
    uint8_t mtu = 1;  // code: 256 bytes
    uint32_t host_psn = kHostPsn;
    uint32_t peer_psn = kPeerPsn;
    verbs::QpState state = verbs::QpState::kRts;  // how far it is taken
    Options() {
      // Payloads above are placed by memory operations, so both ways are in use.
      host.payload_stride = 128;
    }
  };
  explicit ScriptedPeer(const Options& options = {});

  QpHost& host() { return host_; }
  const verbs::QpAttributes& attributes() const { return attributes_; }
  uint32_t mtu() const { return verbs::MtuBytes(options_.mtu); }
  TimePoint now() const { return now_; }

  // Headers of a packet to the queue pair.
  wire::Headers To(wire::Opcode opcode, uint32_t psn, bool ack_request = false) const;
  // Adds a RETH or AtomicETH that names the host's memory at `offset`.
  wire::Headers Write(wire::Opcode opcode, uint32_t psn, uint64_t offset, uint32_t length,
                      bool ack_request = false) const;
  wire::Headers Read(uint32_t psn, uint64_t offset, uint32_t length) const;
  wire::Headers CompareSwap(uint32_t psn, uint64_t offset, uint64_t compare, uint64_t swap) const;
  wire::Headers FetchAdd(uint32_t psn, uint64_t offset, uint64_t add) const;
  wire::Headers Ack(uint32_t psn, uint8_t syndrome = wire::kSyndromeAck, uint32_t msn = 0) const;
  wire::Headers ReadResponse(wire::Opcode opcode, uint32_t psn) const;
  wire::Headers AtomicAck(uint32_t psn, uint64_t original) const;
  static std::vector<uint8_t> Bytes(size_t length, uint8_t first = 1);

  // One packet into the queue pair; nothing else runs. Returns what became of it.
  metrics::DropReason Deliver(const wire::Headers& headers,
                              const std::vector<uint8_t>& payload = {});
  WirePacket Build(wire::Headers headers, const std::vector<uint8_t>& payload) const;
  metrics::DropReason DeliverRaw(const WirePacket& packet);
  // The same with a mark of congestion (ECN CE).
  metrics::DropReason DeliverMarked(const wire::Headers& headers,
                                    const std::vector<uint8_t>& payload = {});

  // Lets the queue pair send and its memory operations happen until it is quiet; yields what it
  // sent since the last call.
  std::vector<SentPacket> Out();
  // One turn of the queue pair without touching memory: what it sends that needs none.
  std::vector<SentPacket> OutWithoutMemory();
  // The one packet of Out(); fails the test when there are more or fewer.
  SentPacket OutOne();
  // Time moves, deadlines that fall due are delivered in time, and what they caused is returned.
  std::vector<SentPacket> Advance(Duration by);

  // Requests on the queue pair under test. Address and length in its memory.
  void PostSend(uint64_t offset, uint32_t length, uint16_t flags = ROCEGW_WQE_SIGNALED);
  void PostWrite(uint64_t offset, uint32_t length, uint64_t remote = 0x7000,
                 uint16_t flags = ROCEGW_WQE_SIGNALED);
  void PostRead(uint64_t offset, uint32_t length, uint64_t remote = 0x7000,
                uint16_t flags = ROCEGW_WQE_SIGNALED);
  void PostFetchAdd(uint64_t offset, uint64_t add, uint64_t remote = 0x7000,
                    uint16_t flags = ROCEGW_WQE_SIGNALED);
  void PostCompareSwap(uint64_t offset, uint64_t compare, uint64_t swap, uint64_t remote = 0x7000,
                       uint16_t flags = ROCEGW_WQE_SIGNALED);
  void PostReceive(uint64_t offset, uint32_t length);
  uint64_t next_wr_id = 100;

  // The completions since the last call, sends and receives together.
  std::vector<rocegw_cqe> Poll() { return host_.Poll(); }
  // The one completion; fails the test when there are more or fewer.
  rocegw_cqe PollOne();

 private:
  void Post(uint8_t opcode, uint64_t offset, uint32_t length, uint64_t remote, uint16_t flags,
            uint64_t compare_add = 0, uint64_t swap = 0);
  std::vector<SentPacket> TakeSent();

  Options options_;
  QpHost host_;
  verbs::QpAttributes attributes_;
  TimePoint now_{1000000000};
};

}  // namespace rocegw::testing
