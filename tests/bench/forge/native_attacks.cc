// SPDX-License-Identifier: Apache-2.0
// Forged packets at a queue pair on plain RoCEv2: a whole production worker takes them from its
// port, and after each burst its queue pair and the program's memory are looked at.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>

#include "gateway/port/packet_pool.h"
#include "tests/bench/forge/attack.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::bench {
namespace {

using testing::GatewayPair;
using testing::Random;
using testing::RingEnd;
using verbs::QpState;
using Counters = metrics::WorkerCounters;

constexpr int kPeer = 0;
constexpr int kVictim = 1;

// Port of the victim: it receives forged datagrams, and what it sends is counted.
class AttackedPort final : public port::PacketPort {
 public:
  static constexpr size_t kBurst = 64;

  Forged& Next() { return forged_[count_++]; }
  uint64_t sent() const { return sent_; }

  port::PortLimits limits() const override { return {.max_datagram = 4200, .burst = kBurst}; }
  port::TxPacket* Acquire() override { return pool_.Get(); }
  void Release(port::TxPacket* packet) override { pool_.Put(packet); }
  size_t Transmit(std::span<port::TxPacket* const> packets) override {
    for (port::TxPacket* packet : packets) pool_.Put(packet);
    sent_ += packets.size();
    return packets.size();
  }
  bool Flush() override { return true; }
  size_t Receive(std::span<wire::RxDatagram> into) override {
    const size_t count = std::min(into.size(), count_ - taken_);
    for (size_t i = 0; i < count; ++i) into[i] = forged_[taken_ + i].datagram();
    taken_ += count;
    return count;
  }
  int wake_fd() const override { return -1; }
  // Returns true if the worker has taken all datagrams, and starts anew.
  bool Clear() {
    const bool all = taken_ == count_;
    if (all) taken_ = count_ = 0;
    return all;
  }

 private:
  std::array<Forged, kBurst> forged_;
  size_t count_ = 0;
  size_t taken_ = 0;
  uint64_t sent_ = 0;
  port::PacketPool<port::TxPacket> pool_{256, 4200};
};

// Fields that the attacker knows.
enum Known : uint8_t { kAddress = 1, kQpn = 2, kPsn = 4, kKey = 8 };

class NativeVictim {
 public:
  explicit NativeVictim(Random& random) : random_(random) { Open(); }

  // Sends WRITEs of 8 bytes.
  Outcome Writes(uint64_t count, uint8_t known, size_t burst) {
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kRcWriteOnly;
    headers.bth.ack_request = true;
    headers.reth.length = 8;
    return Send(count, burst, [&](Forged& out) {
      const std::array<uint8_t, 8> body = {1, 2, 3, 4, 5, 6, 7, 8};
      headers.bth.dest_qpn = DestinationOf(known);
      headers.bth.psn = Psn((known & kPsn) != 0 ? before_.expected_psn.value : Any24(random_));
      headers.reth.address = GatewayPair::kBase + 8 * random_.Below(512);
      headers.reth.rkey =
          (known & kKey) != 0 ? GatewayPair::kKey[kVictim] : random_.Value<uint32_t>();
      Forge(SourceOf(known), GatewayPair::GidOf(kVictim), headers, body, out);
    });
  }

  // Sends NAKs while the victim waits for answers to `requests` WRITEs.
  Outcome Naks(uint64_t count, uint32_t requests, size_t burst) {
    requests_ = requests;
    Open();
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kRcAck;
    headers.aeth.syndrome = wire::SyndromeOf(wire::NakCode::kRemoteAccess);
    return Send(count, burst, [&](Forged& out) {
      headers.bth.dest_qpn = DestinationOf(kQpn);
      headers.bth.psn = Psn(Any24(random_));
      Forge(SourceOf(kAddress), GatewayPair::GidOf(kVictim), headers, {}, out);
    });
  }

  Outcome CongestionNotices(uint64_t count, uint8_t known, size_t burst) {
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kCnp;
    return Send(count, burst, [&](Forged& out) {
      headers.bth.dest_qpn = DestinationOf(known);
      Forge(SourceOf(known), GatewayPair::GidOf(kVictim), headers, {}, out);
    });
  }

 private:
  wire::Gid SourceOf(uint8_t known) {
    return (known & kAddress) != 0 ? GatewayPair::GidOf(kPeer) : AnyAddress(random_);
  }
  Qpn DestinationOf(uint8_t known) {
    return Qpn{(known & kQpn) != 0 ? victim_->options().qpn : Any24(random_)};
  }

  template <typename Make>
  Outcome Send(uint64_t count, size_t burst, const Make& make) {
    Outcome outcome;
    const uint64_t answers = port_->sent();
    while (outcome.sent < count) {
      const size_t now = std::min<uint64_t>(burst, count - outcome.sent);
      for (size_t i = 0; i < now; ++i) make(port_->Next());
      // Unanswered requests must not time out, so time stands still for them.
      if (requests_ == 0) gateways_->Step(Microseconds(10));
      for (int i = 0; i < 3 || !port_->Clear(); ++i)
        gateways_->RunWorker(kVictim, 0, gateways_->now());
      gateways_->TakeNotices();
      gateways_->notices.clear();
      outcome.sent += now;
      Compare(outcome);
    }
    outcome.answered = port_->sent() - answers;
    return outcome;
  }

  worker::QpSnapshot Query() {
    return gateways_
        ->Call(kVictim, 0, {0, worker::QueryQp{SessionId{1}, Qpn{victim_->options().qpn}}})
        .qps.at(0);
  }
  void Look() {
    before_ = Query();
    notices_ = gateways_->Count(kVictim, &Counters::cnp_rx_packets);
  }

  // Records the change since the last look, and repairs what was harmed.
  void Compare(Outcome& outcome) {
    const worker::QpSnapshot after = Query();
    std::vector<uint8_t>& memory = gateways_->memory(kVictim);
    const bool written =
        std::any_of(memory.begin(), memory.end(), [](uint8_t b) { return b != 0; });
    if (after.attributes.state != before_.attributes.state) {
      outcome.Add(Change::kQueuePair);
      Open();
      return;
    } else if (written) {
      outcome.Add(Change::kMemory);
    } else if (after.expected_psn != before_.expected_psn ||
               after.oldest_unacked_psn != before_.oldest_unacked_psn) {
      outcome.Add(Change::kSequence);
    } else if (gateways_->Count(kVictim, &Counters::cnp_rx_packets) != notices_) {
      outcome.Add(Change::kRate);
    } else {
      return;
    }
    std::fill(memory.begin(), memory.end(), uint8_t{0});
    Look();
  }

  // Connects two new queue pairs; the victim's port is the attacker's.
  void Open() {
    testing::GatewayPairOptions options;
    options.memory_bytes = 4096;
    gateways_.emplace(options);
    testing::RingOptions ring;
    // Numbers 0, 1 and the group number are none of a queue pair's.
    ring.qpn = static_cast<uint32_t>(random_.Between(0x100, 0xFFFF00));
    peer_ = &gateways_->AddQp(kPeer, ring);
    ring.qpn = static_cast<uint32_t>(random_.Between(0x100, 0xFFFF00));
    victim_ = &gateways_->AddQp(kVictim, ring);
    gateways_->Connect(*peer_, *victim_);
    if (gateways_->Call(kVictim, 0, {0, worker::UsePorts{{port_.get()}}}).error != 0) std::abort();
    Request();
  }

  // Makes the victim send so many WRITEs, which are not answered.
  void Request() {
    if (requests_ == 0) return Look();
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.u.rdma.remote_address = GatewayPair::kBase;
    wqe.u.rdma.rkey = GatewayPair::kKey[kPeer];
    for (uint32_t i = 0; i < requests_; ++i) {
      if (!victim_->PostSend(wqe, {{GatewayPair::kBase, 8, GatewayPair::kKey[kVictim]}}))
        std::abort();
    }
    gateways_->Ring(kVictim, *victim_);
    for (int i = 0; i < 10; ++i) gateways_->RunWorker(kVictim, 0, gateways_->now());
    Look();
    if (PsnDistance(before_.next_send_psn, before_.oldest_unacked_psn) !=
        static_cast<int32_t>(requests_))
      std::abort();
  }

  Random& random_;
  // Outlives the gateways, whose worker uses it.
  const std::unique_ptr<AttackedPort> port_ = std::make_unique<AttackedPort>();
  RingEnd* peer_ = nullptr;
  RingEnd* victim_ = nullptr;
  uint64_t notices_ = 0;
  uint32_t requests_ = 0;
  std::optional<GatewayPair> gateways_;
  worker::QpSnapshot before_;
};

// A wrong key ends the queue pair, so that the attacker need not know the key. QPNs of RNICs
// increase by one (ReDMArk, V5), so that they cost no guesses.
Expected WriteBits(uint8_t known) {
  const double address = (known & kAddress) != 0 ? 0 : kAddressBits;
  const double psn = (known & kPsn) != 0 ? 0 : kPsnBits;
  const bool knows_number = (known & kQpn) != 0;
  return {.bits = address + (knows_number ? 0 : kNumberBits) + psn,
          .rnic = address + psn,
          .tcp = address + (knows_number ? 0 : kTcpPortBits) +
                 ((known & kPsn) != 0 ? 0 : kTcpDataBits)};
}

Attack WritesOf(const char* knows, uint8_t known) {
  const Expected expected = WriteBits(known);
  return {"native RC", "WRITE", knows, expected, [=](uint64_t count, Random& random) {
            return NativeVictim(random).Writes(count, known, Attack::BurstOf(expected.bits));
          }};
}

Attack NoticesOf(const char* knows, uint8_t known, const Expected& expected) {
  return {"native RC", "CNP", knows, expected, [=](uint64_t count, Random& random) {
            return NativeVictim(random).CongestionNotices(count, known,
                                                          Attack::BurstOf(expected.bits));
          }};
}

}  // namespace

std::vector<Attack> NativeAttacks() {
  constexpr uint8_t kAll = kAddress | kQpn | kPsn | kKey;
  constexpr uint32_t kRequests = 32;
  // A NAK is taken for each of the requests in flight.
  constexpr double kNakBits = kPsnBits - 5;
  return {
      WritesOf("nothing", 0),
      WritesOf("address", kAddress),
      WritesOf("QPN", kQpn),
      WritesOf("PSN", kPsn),
      WritesOf("key", kKey),
      WritesOf("address, QPN", kAddress | kQpn),
      WritesOf("all but the address", kAll & ~kAddress),
      WritesOf("all but the QPN", kAll & ~kQpn),
      WritesOf("all but the PSN", kAll & ~kPsn),
      WritesOf("all but the key", kAll & ~kKey),
      WritesOf("everything", kAll),
      {"native RC", "NAK, 32 requests in flight", "address, QPN",
       Expected{kNakBits, kNakBits, kTcpResetBits},
       [](uint64_t count, Random& random) {
         return NativeVictim(random).Naks(count, kRequests, Attack::BurstOf(kNakBits));
       }},
      NoticesOf("address", kAddress, {kNumberBits, 0}),
      NoticesOf("address, QPN", kAddress | kQpn, {0, 0}),
  };
}

}  // namespace rocegw::bench
