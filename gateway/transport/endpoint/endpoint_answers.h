// SPDX-License-Identifier: Apache-2.0
// READs and atomics that peers requested from an endpoint. Each is executed once, when its frame
// arrives, and its outcome is kept until every frame that carries it is acknowledged. Responses
// share the endpoint round-robin, so that a long READ does not delay the others. Belongs to one
// worker.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/transport/endpoint/endpoint_tombstone.h"
#include "gateway/transport/endpoint/peer_counts.h"
#include "gateway/transport/in_flight.h"
#include "gateway/transport/message/peer_channels.h"
#include "gateway/transport/outbox.h"
#include "gateway/transport/pump.h"

namespace rocegw::transport {

class EndpointAnswers {
 public:
  // Limits of unanswered requests: in total, and per sender. An initiator respects the second by
  // itself. Half of the total is shared among the peer gateways, so that none can take all.
  static constexpr size_t kMost = 1024;
  static constexpr uint32_t kMostOfOne = 128;
  // Longest time for which a fully acknowledged response is kept; any activity here frees it
  // earlier.
  static constexpr Duration kLook = Milliseconds(5);

  // A request that can no longer be answered, because its memory is not accessible any more.
  struct Failed {
    flow::Carrier* carrier = nullptr;
    Qpn to;
    Qpn as;
    uint32_t message = 0;
  };

  // `channels` must outlive this object.
  explicit EndpointAnswers(PeerChannels& channels) : channels_(channels) {}

  void Reset();
  // Forgets all requests, answered or not, and what they use of the channels.
  void ForgetAll();
  bool HasRoomFor(const flow::Carrier& carrier, Qpn source) const;
  // Executes the request in `frame`. `serial` names the request within the endpoint from now on;
  // `as` is the number that the frame was addressed to. Returns nothing if a response will follow,
  // else the code to refuse the request with.
  std::optional<wire::NakCode> Take(QpContext& qp, Outbox& outbox, flow::Carrier& carrier,
                                    const wire::ChannelFrame& frame, uint32_t serial, Qpn as);
  PumpResult Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  flow::Resend Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                     const flow::FrameRef& frame, Psn psn);
  void OnAtomicResult(const AccessTag& tag, uint64_t original);
  void OnMemoryFault(const AccessTag& tag);
  void OnCarrierLost(const flow::Carrier& carrier);
  void OnDeadline(TimePoint now);
  TimePoint deadline() const { return look_at_; }
  // Returns the requests that failed since the last call. The caller takes over their channel use
  // (PeerChannels).
  std::vector<Failed> TakeFailed() { return std::exchange(failed_, {}); }

  // Copies the atomic results that may not have arrived to the tombstone.
  void Leave(EndpointTombstone& tombstone) const;

  // Returns the bytes of heap of remembered requests.
  size_t heap_bytes() const { return answers_.size() * kHeapOfAnswer; }
  // Returns the number of remembered requests, answered or not.
  size_t size() const { return answers_.size(); }
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names);

 private:
  // Bytes of one response before the next response's turn.
  static constexpr uint32_t kQuantum = 16 * 1024;

  struct Answer {
    ExecutedMessage executed;
    flow::Carrier* carrier = nullptr;
    Qpn to;
    Qpn as;
    Psn last;  // PSN of the newest frame
  };
  using Answers = std::unordered_map<uint32_t, Answer>;
  // With its number in a list, and what a hash table and the allocator add.
  static constexpr size_t kHeapOfAnswer = sizeof(std::pair<const uint32_t, Answer>) + 64;
  enum class Sent : uint8_t { kAll, kPart, kNothing, kPortFull, kFailed };

  static uint64_t SenderOf(const flow::Carrier& carrier, Qpn source) {
    return uint64_t{carrier.number().value} << 32 | source.value;
  }
  Sent SendPart(QpContext& qp, Outbox& outbox, uint32_t serial, Answer& answer, TimePoint now,
                PumpBudget& budget);
  bool Fill(QpContext& qp, Outbox& outbox, uint32_t serial, const Answer& answer, uint32_t offset,
            uint32_t bytes, Psn psn, const flow::CarrierAddress& address,
            port::TxPacket& packet) const;
  // Ends the request's wait: its response is completely sent, or never will be.
  void EndWait(const Answer& answer);
  void BeginWait(const Answer& answer);
  void Fail(Answers::iterator at);
  void Forget(Answers::iterator at);
  void ForgetArrived();

  PeerChannels& channels_;
  Answers answers_;  // by serial
  GrowingRing<uint32_t>
      waiting_;                 // serials of unanswered requests; the next to be served is in front
  GrowingRing<uint32_t> sent_;  // serials of responses that may not have arrived, oldest in front
  std::unordered_map<uint64_t, uint32_t> waiting_of_;  // number of unanswered requests by sender
  PeerCounts waiting_at_;                              // the same by peer gateway
  std::vector<Failed> failed_;
  TimePoint look_at_ = kNever;
};

}  // namespace rocegw::transport
