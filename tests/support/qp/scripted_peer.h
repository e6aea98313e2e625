// SPDX-License-Identifier: Apache-2.0
// Queue pair under test with a scripted peer: tests build packets field by field, get the queue
// pair's packets decoded, and advance time. The peer does nothing by itself, so each event is one
// call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/support/qp/qp_host.h"

namespace rocegw::testing {

// Packet that the queue pair sent.
struct SentPacket {
  wire::Headers headers;
  std::vector<uint8_t> payload;
  uint8_t traffic_class = 0;
  wire::Gid destination{};

  wire::Opcode opcode() const { return headers.bth.opcode; }
  uint32_t psn() const { return headers.bth.psn.value; }
  uint8_t syndrome() const { return headers.aeth.syndrome; }
};

// Packets that the queue pair sent since the last call.
std::vector<SentPacket> TakeSent(QpHost& host);

class ScriptedPeer {
 public:
  static constexpr uint32_t kQpn = 0x40022;
  static constexpr uint32_t kHostPsn = 1000;  // first PSN of the queue pair's requests
  static constexpr uint32_t kPeerPsn = 5000;  // first PSN of the peer's requests

  struct Options {
    QpHost::Options host;
    verbs::QpAttributes limits = QpHost::DefaultLimits();
    uint8_t mtu = 1;  // code: 256 bytes
    uint32_t host_psn = kHostPsn;
    uint32_t peer_psn = kPeerPsn;
    verbs::QpState state = verbs::QpState::kRts;  // state at the start
    Options() {
      // Larger payloads are placed by memory operations, so that tests use both paths.
      host.payload_stride = 128;
    }
  };
  explicit ScriptedPeer(const Options& options = {});

  QpHost& host() { return host_; }
  const verbs::QpAttributes& attributes() const { return attributes_; }
  uint32_t mtu() const { return verbs::MtuBytes(options_.mtu); }
  TimePoint now() const { return now_; }

  // Returns the headers of a packet to the queue pair.
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

  // Delivers one packet to the queue pair and nothing else. Returns the result.
  metrics::DropReason Deliver(const wire::Headers& headers,
                              const std::vector<uint8_t>& payload = {});
  WirePacket Build(wire::Headers headers, const std::vector<uint8_t>& payload) const;
  metrics::DropReason DeliverRaw(const WirePacket& packet);
  // Delivers a packet with ECN CE.
  metrics::DropReason DeliverMarked(const wire::Headers& headers,
                                    const std::vector<uint8_t>& payload = {});

  // Pumps the queue pair and executes memory operations until it is idle. Returns the packets sent
  // since the last call.
  std::vector<SentPacket> Out();
  // Pumps the queue pair once without memory operations. Returns packets that need none.
  std::vector<SentPacket> OutWithoutMemory();
  // Returns the only packet of Out(). Fails the test if there is another number.
  SentPacket OutOne();
  // Advances time and delivers each deadline when it is due. Returns the packets sent.
  std::vector<SentPacket> Advance(Duration by);

  // Post requests on the queue pair under test. Address and length refer to its memory.
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

  // Returns the completions since the last call, sends and receives.
  std::vector<rocegw_cqe> Poll() { return host_.Poll(); }
  // Returns the only completion. Fails the test if there is another number.
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
