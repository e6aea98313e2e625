// SPDX-License-Identifier: Apache-2.0
// Model of a commercial RNIC as a peer: a RoCEv2 RC requester and responder (SEND, WRITE, READ)
// with Go-Back-N, an acknowledgement whenever a request asks for it, one NAK per gap, and DCQCN at
// both ends. Independent on purpose: it uses the gateway's packet codec, but nothing of its
// transport or congestion control.
//
// Packets leave one by one as the cable takes them: responses and CNPs first, then queue pairs
// round-robin, each not before its rate allows. Owned by the test; made after its Network and
// destroyed before it. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "gateway/base/psn.h"
#include "gateway/wire/codec.h"
#include "tests/sim/network/topology.h"
#include "tests/sim/rnic/dcqcn.h"

namespace rocegw::sim {

enum class RnicOperation : uint8_t { kSend, kWrite, kRead, kReceive };

struct RnicCompletion {
  uint64_t id = 0;
  RnicOperation operation = RnicOperation::kSend;
  bool ok = true;
  uint32_t length = 0;
};

struct RnicRequest {
  uint64_t id = 0;
  RnicOperation operation = RnicOperation::kSend;
  uint64_t offset = 0;  // in local memory
  uint32_t length = 0;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
};

struct RnicConfig {
  size_t memory_bytes = 1 << 20;
  DcqcnParameters dcqcn;
  bool congestion_control = true;
  uint32_t window_packets = 1024;  // limit in flight per queue pair
  uint32_t ack_every = 32;         // packets of a long message between acknowledgement requests
  Duration timeout = Milliseconds(67);
};

struct RnicConnection {
  uint32_t own_qpn = 0;
  wire::Gid peer;
  Qpn peer_qpn;
  uint32_t mtu = 1024;  // bytes
  Psn send_psn;
  Psn receive_psn;
  uint16_t source_port = 0xC000;
};

struct RnicCounters {
  uint64_t data_packets = 0;
  uint64_t data_bytes = 0;  // payload of requests, without retransmissions
  uint64_t retransmitted = 0;
  uint64_t cnps_sent = 0;
  uint64_t cnps_received = 0;
  uint64_t naks_sent = 0;
  uint64_t naks_received = 0;
  uint64_t timeouts = 0;
  uint64_t dropped = 0;  // malformed, unknown, or damaged
  uint64_t received_bytes = 0;
};

class Rnic final : public Endpoint, public EventHandler {
 public:
  using OnCompletion = std::function<void(size_t qp, const RnicCompletion&)>;

  Rnic(Network& network, uint32_t number, const RnicConfig& config);

  static constexpr uint64_t kBase = 0x40000000;
  uint32_t key() const { return 0xC0DE0000 + number(); }
  std::vector<uint8_t>& memory() { return memory_; }
  wire::Gid gid() const { return AddressOf(number()); }

  // Returns the queue pair's index.
  size_t Connect(const RnicConnection& connection);
  void Post(size_t qp, const RnicRequest& request);
  void PostReceive(size_t qp, uint64_t id, uint64_t offset, uint32_t length);
  // Sets a function that is called at every completion; it may post.
  void OnComplete(OnCompletion on_completion) { on_completion_ = std::move(on_completion); }

  const RnicCounters& counters() const { return counters_; }
  int64_t RateOf(size_t qp);

  void Attach(Link& uplink) override;
  void Arrive(Packet* packet) override;
  void OnEvent(uint64_t argument) override;

 private:
  struct Entry {
    RnicRequest request;
    bool started = false;
    Psn first;
    uint32_t psns = 0;
  };
  struct Receive {
    uint64_t id;
    uint64_t offset;
    uint32_t length;
    uint32_t filled = 0;
  };
  // READ data that this end still has to send.
  struct Answer {
    Psn next;
    uint64_t offset;  // in local memory
    uint32_t left;
    bool begun = false;
  };
  struct Qp {
    Qp(const RnicConnection& c, const RnicConfig& config, int64_t line_rate)
        : connection(c), pace(config.dcqcn, line_rate) {}
    RnicConnection connection;
    ReactionPoint pace;
    NotificationPoint notify;
    TimePoint may_send_at;
    // Requester
    std::deque<Entry> entries;  // front: the oldest incomplete
    Psn una, next, most;
    bool went_back = false;  // since the last progress
    TimePoint progress_at;
    bool timer_set = false;
    uint32_t since_ack_request = 0;
    TimePoint not_ready_until;
    // Responder
    Psn expected;
    uint32_t msn = 0;
    bool gap_answered = false;
    std::deque<Receive> receives;
    uint64_t write_offset = 0;
    uint32_t write_left = 0;
    std::deque<Answer> answers;
  };
  struct Control {
    size_t qp;
    wire::Headers headers;
  };

  void Wake(TimePoint when);
  void SendNext();
  bool SendOf(size_t index, TimePoint now);
  bool SendAnswer(Qp& qp);
  bool SendRequest(size_t index);
  void Sent(Qp& qp, uint32_t wire_bytes, TimePoint now);
  // Builds and sends a packet. Returns its bytes on the cable.
  uint32_t Put(Qp& qp, wire::Headers& headers, const uint8_t* payload, uint32_t length,
               uint8_t traffic_class);
  void QueueAck(size_t index, uint8_t syndrome, Psn psn);
  void Complete(size_t index, const RnicCompletion& completion);
  void OnRequest(size_t index, const wire::RxPacket& packet);
  void OnResponse(size_t index, const wire::RxPacket& packet);
  void Acknowledge(size_t index, Psn upto);
  void GoBack(Qp& qp, Psn to);
  Psn FirstReadPsn(const Qp& qp) const;
  void SetTimer(size_t index);
  uint8_t* Local(uint64_t address, uint32_t rkey, uint64_t length);

  Network& network_;
  const RnicConfig config_;
  std::vector<uint8_t> memory_;
  Link* uplink_ = nullptr;
  std::vector<std::unique_ptr<Qp>> qps_;
  std::unordered_map<uint32_t, size_t> by_qpn_;
  std::deque<Control> control_;
  size_t turn_ = 0;
  TimePoint wake_at_ = kNever;
  TimePoint free_at_;
  uint16_t ip_id_ = 0;
  OnCompletion on_completion_;
  RnicCounters counters_;
};

}  // namespace rocegw::sim
