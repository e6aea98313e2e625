// SPDX-License-Identifier: Apache-2.0
// READs and atomics that an endpoint was asked for by others: each is executed when its frame
// comes, once, and its outcome is kept until all frames with it have arrived. Who asks is answered
// in turns, so that a long READ keeps nobody waiting. Belongs to one worker.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gateway/base/growing_ring.h"
#include "gateway/transport/departed_endpoint.h"
#include "gateway/transport/lanes.h"
#include "gateway/transport/outbox.h"
#include "gateway/transport/pump.h"
#include "gateway/transport/under_way.h"

namespace rocegw::transport {

class EndpointAnswers {
 public:
  // Not answered yet: of everybody, and of one sender. An initiator keeps to the latter by itself.
  static constexpr size_t kMost = 1024;
  static constexpr uint32_t kMostOfOne = 128;
  // What has arrived is let go of when something happens here, and no later than this.
  static constexpr Duration kLook = Milliseconds(5);

  // One that cannot be answered any more, since its memory is gone.
  struct Failed {
    flow::Carrier* carrier = nullptr;
    Qpn to;
    Qpn as;
    uint32_t message = 0;
  };

  // Outlives it.
  explicit EndpointAnswers(Lanes& lanes) : lanes_(lanes) {}

  void Reset();
  bool HasRoomFor(const flow::Carrier& carrier, Qpn source) const;
  // Executes what the frame asks for. `serial`: of the endpoint, names it from now on; `as`: whom
  // it was sent to. Nothing: it will be answered.
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
  // Those that have failed since the last call, each with its use of the lane.
  std::vector<Failed> TakeFailed() { return std::exchange(failed_, {}); }

  // The results of atomics that may not have arrived.
  void Leave(DepartedEndpoint& departed) const;

  // Remembered, answered or not.
  size_t size() const { return answers_.size(); }

 private:
  static constexpr uint32_t kQuantum = 16 * 1024;  // bytes of one answer before the next one's turn

  struct Answer {
    ExecutedMessage executed;
    flow::Carrier* carrier = nullptr;
    Qpn to;
    Qpn as;
    Psn last;  // of the newest frame
  };
  using Answers = std::unordered_map<uint32_t, Answer>;
  enum class Sent : uint8_t { kAll, kPart, kNothing, kPortFull, kFailed };

  static uint64_t SenderOf(const flow::Carrier& carrier, Qpn source) {
    return uint64_t{carrier.number().value} << 32 | source.value;
  }
  Sent SendPart(QpContext& qp, Outbox& outbox, uint32_t serial, Answer& answer, TimePoint now,
                PumpBudget& budget);
  bool Fill(QpContext& qp, Outbox& outbox, uint32_t serial, const Answer& answer, uint32_t offset,
            uint32_t bytes, Psn psn, const flow::CarrierAddress& address,
            port::TxPacket& packet) const;
  void ForgetAll();
  // It is whole on its way, or will never be.
  void EndWait(const Answer& answer);
  void Fail(Answers::iterator at);
  void Forget(Answers::iterator at);
  void ForgetArrived();

  Lanes& lanes_;
  Answers answers_;                // by serial
  GrowingRing<uint32_t> waiting_;  // serials of those not answered, whose turn is next in front
  GrowingRing<uint32_t> sent_;     // of those that may not have arrived, oldest in front
  std::unordered_map<uint64_t, uint32_t> waiting_of_;  // by sender
  std::vector<Failed> failed_;
  TimePoint look_at_ = kNever;
};

}  // namespace rocegw::transport
