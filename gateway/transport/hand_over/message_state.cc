// SPDX-License-Identifier: Apache-2.0
// State of the halves of connected queue pairs that use channels, for a gateway that takes over
// (gateway/hand_over/state_stream.h).
#include "gateway/transport/hand_over/message_state.h"

#include "gateway/flow/carrier_names.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/transport/message/message_requester.h"
#include "gateway/transport/message/message_responder.h"

namespace rocegw::transport {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Limits of lists that windows, attributes and memory bound otherwise.
constexpr uint32_t kMostMessages = 1u << 16;
// Earlier gateways had this limit and wrote the ranges of one message beside each other.
constexpr uint32_t kMostPlaced = 1u << 16;
static_assert(PlacedRanges::kMost < kMostPlaced);
constexpr uint32_t kMostPaths = 256;

}  // namespace

void HandOver(StateStream& state, MessageReply& reply) {
  auto& [syndrome, attempt, message, ticket, alone] = reply;
  state(syndrome, attempt, message, ticket, alone);
}

void HandOver(StateStream& state, ExecutedMessage& executed) {
  auto& [asked, atomic, known, message, ticket, address, rkey, length, sent, answered, result] =
      executed;
  state(asked, atomic, known, message, ticket, address, rkey, length, sent, answered, result);
  state.Require(length <= verbs::kMaxMessage && sent <= length, "READ response is impossible");
}

void HandOver(StateStream& state, IncomingMessage& message) {
  std::vector<ByteRange> none;
  HandOver(state, message, none);
}

void HandOver(StateStream& state, IncomingMessage& message, std::vector<ByteRange>& placed) {
  auto& [kind, flags, refused, done, in_ring, nak, receive_status, length, arrived, receive, taken,
         has_taken, immediate, rkey, address, local, swap_or_add, compare, tail_length, tail] =
      message;
  state.Enum(kind, static_cast<wire::FrameKind>(static_cast<uint8_t>(wire::FrameKind::kCount) - 1));
  state(flags, refused, done, in_ring, nak);
  state.Enum(receive_status, verbs::WcStatus::kGeneral);
  state(length, arrived, receive, taken, has_taken, immediate, rkey, address, local, swap_or_add,
        compare, tail_length, tail);
  // Earlier gateways kept a range from offset 0 apart.
  const uint32_t prefix = state.Carry(uint32_t{0});
  state.Require(tail_length <= IncomingMessage::kTail && arrived <= length && prefix <= length,
                "message is impossible");
  state.Vector(placed, kMostPlaced, [&, &local = local, &length = length](ByteRange& range) {
    const uint64_t begin = state.Carry(range.begin - local);
    const uint64_t end = state.Carry(range.end - local);
    state.Require(begin <= end && end <= length, "range is impossible");
    range = {local + begin, local + end};
  });
  if (state.reading() && prefix != 0) placed.push_back({local, local + prefix});
}

void HandOver(StateStream& state, MessagesInFlight& work) {
  auto& [ordered, replies, messages, spare_receives, answering, executed] = work;
  state(ordered);
  state.Ring(replies, kMostMessages, [&](MessageReply& reply) { HandOver(state, reply); });
  messages.HandOver(state, kMostMessages,
                    [&](IncomingMessage& message, std::vector<ByteRange>& placed) {
                      HandOver(state, message, placed);
                    });
  state.Vector(spare_receives, kMostMessages, [&](uint32_t& receive) { state(receive); });
  state.Vector(executed, kMostMessages, [&](ExecutedMessage& one) { HandOver(state, one); });
  HandOver(state, answering, static_cast<uint32_t>(executed.size()));
}

void HandOver(StateStream& state, RestingRing<uint32_t>& indices, uint32_t end) {
  const uint32_t count = state.Count(indices.size(), end);
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    if (state.reading()) indices.push_back(0);
    state(indices[i]);
    state.Require(indices[i] < end, "answer of an unknown request");
  }
}

void PeerChannels::HandOver(StateStream& state, flow::CarrierNames& names) {
  auto& [channels] = *this;
  state.Vector(channels, kMostPaths, [&](PeerChannel& entry) {
    auto& [carrier, place, uses, in_flight, unasked, wants_room] = entry;
    flow::HandOver(state, names, carrier);
    state.Require(carrier != nullptr, "entry has no channel");
    if (state.reading() && carrier != nullptr) carrier->Hold();
    flow::HandOver(state, place);
    state(uses, in_flight, unasked, wants_room);
  });
  // An entry without a carrier, of a state that is refused, must not be released.
  if (!state.ok()) std::erase_if(channels, [](const auto& one) { return one.carrier == nullptr; });
}

void Multipath::HandOver(StateStream& state, flow::CarrierNames& names) {
  auto& [channels, path, left] = *this;
  channels.HandOver(state, names);
  // Taken modulo the number of paths before each use.
  path = state.Carry(static_cast<uint32_t>(path), kMostPaths);
  state(left);
}

void MessageRequester::HandOver(StateStream& state, QpContext& qp, const SendQueue& send) {
  const StateRecord record(state, StateKind::kMessageRequester);
  auto& [base, cursor, receives, ordered, attempt, rnr_waiting, not_ready, heard, refused, offering,
         resent, paths_open, progress, backoff] = *this;
  state(base, cursor, receives, ordered, attempt);
  const bool on_channel = state.Carry(qp.requests_on_channel());
  if (state.reading()) {
    const RequestPath other = qp.sends() ? RequestPath::kNative : RequestPath::kUndecided;
    qp.request_path = on_channel ? RequestPath::kChannel : other;
  }
  rnr_waiting = state.Carry<bool>(rnr_waiting);
  not_ready = state.Carry<bool>(not_ready);
  heard = state.Carry<bool>(heard);
  refused = state.Carry<bool>(refused);
  offering = state.Carry<bool>(offering);
  resent = state.Carry<bool>(resent);
  paths_open = state.Carry<bool>(paths_open);
  state(progress);
  const bool backs_off = state.Carry(backoff != nullptr);
  if (backs_off && backoff == nullptr) backoff = std::make_unique<RnrBackoff>();
  if (backs_off) {
    auto& [careful, rnr_left, number, refused_since, until] = *backoff;
    state(careful, rnr_left, number, refused_since, until);
  }
  if (!state.reading() || !on_channel) return;
  state.Require((!rnr_waiting && !offering) || backs_off, "RNR backoff is missing");
  state.Require(static_cast<int32_t>(cursor - send.head()) <= static_cast<int32_t>(send.size()),
                "requests do not match");
  for (uint32_t i = send.head(); state.ok() && i != send.tail(); ++i) {
    const SendEntry& entry = send.At(i);
    state.Require(entry.sent <= entry.request.length && entry.received <= entry.request.length,
                  "request is impossible");
  }
}

void MessageResponder::HandOver(StateStream& state, flow::CarrierNames& names) {
  const StateRecord record(state, StateKind::kMessageResponder);
  auto& [receives, carrier, work, expected, placement_ticket, attempt, established, refused] =
      *this;
  flow::HandOver(state, names, carrier);
  if (state.reading() && carrier != nullptr) carrier->Hold();
  state(expected, placement_ticket, attempt, established, refused);
  const bool works = state.Carry(work != nullptr);
  if (works && work == nullptr) work = std::make_unique<Work>();
  if (!works) return;
  transport::HandOver(state, *work);
  if (!state.reading()) return;
  work->messages.ForEachFrom(0, [&, &filled = receives](const IncomingMessage& message) {
    state.Require(!message.has_taken || message.done || filled.IsOpen(message.taken),
                  "message has no receive");
  });
}

}  // namespace rocegw::transport
