// SPDX-License-Identifier: Apache-2.0
// State of endpoints for a gateway that takes over (gateway/hand_over/state_stream.h).
#include "gateway/flow/carrier_names.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/transport/endpoint/endpoint_initiator.h"
#include "gateway/transport/endpoint/endpoint_target.h"
#include "gateway/transport/endpoint/endpoint_tombstone.h"
#include "gateway/transport/hand_over/message_state.h"

namespace rocegw::transport {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Limits of lists that EndpointTarget and EndpointAnswers bound otherwise. Their own limits of the
// same kind are lower, and do not count what waits for its arrival.
constexpr uint32_t kMostRead = 1u << 16;
constexpr uint32_t kMostRepliesRead = 1u << 17;

// Hands over a map entry by entry; `each` hands over key and value.
template <typename Map, typename F>
void HandOverMap(StateStream& state, Map& map, uint32_t most, F each) {
  const uint32_t count = state.Count(map.size(), most);
  if (!state.reading()) {
    for (auto& [key, value] : map) {
      auto copy = key;
      each(copy, value);
    }
    return;
  }
  map.clear();
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    typename Map::key_type key{};
    typename Map::mapped_type value{};
    each(key, value);
    state.Require(map.try_emplace(key, std::move(value)).second, "entry is there twice");
  }
}

}  // namespace

void EndpointInitiator::HandOver(StateStream& state, flow::CarrierNames& names) {
  const StateRecord record(state, StateKind::kEndpointInitiator);
  auto& [send, channels, messages, ordered, first, reading, asked, look_at, excepted, raised,
         failed_requests] = *this;
  (void)channels;  // handed over by the endpoint
  (void)messages;  // by index, below
  (void)ordered;   // valid during one Pump
  for (uint32_t i = send.head(); state.ok() && i != send.tail(); ++i) {
    const SendEntry& entry = send.At(i);
    state.Require(entry.sent <= entry.request.length && entry.received <= entry.request.length,
                  "request is impossible");
    auto& [carrier, endpoint, key, again, give_up, refused] = MessageOf(i);
    flow::HandOver(state, names, carrier);
    state(endpoint, key, again, give_up, refused);
    state.Require(carrier != nullptr || !Open(i), "message has no channel");
  }
  const bool has_first = state.Carry(first.has_value());
  const uint32_t index = state.Carry(first.value_or(0));
  first = has_first ? std::optional(index) : std::nullopt;
  state(reading, asked, look_at);
  if (record.version() >= 2) state(excepted, raised, failed_requests);
}

void EndpointAnswers::HandOver(StateStream& state, flow::CarrierNames& names) {
  const StateRecord record(state, StateKind::kEndpointAnswers);
  auto& [channels, answers, waiting, sent, waiting_of, waiting_at, failed, look_at] = *this;
  (void)channels;  // handed over by the endpoint
  HandOverMap(state, answers, kMostRead, [&](uint32_t& serial, Answer& answer) {
    auto& [executed, carrier, to, as, last] = answer;
    state(serial);
    transport::HandOver(state, executed);
    flow::HandOver(state, names, carrier);
    state(to, as, last);
    state.Require(carrier != nullptr, "answer has no channel");
  });
  const auto number = [&](uint32_t& serial) { state(serial); };
  // Both may name requests that are forgotten.
  state.Ring(waiting, kMostRead, number);
  state.Ring(sent, kMostRead, number);
  HandOverMap(state, waiting_of, kMostRead,
              [&](uint64_t& sender, uint32_t& count) { state(sender, count); });
  if (state.reading() && state.ok()) {
    waiting_at.clear();
    for (const auto& [serial, answer] : answers)
      if (!answer.executed.answered) waiting_at.Add(answer.carrier->peer());
  }
  state.Vector(failed, kMostRead, [&](Failed& one) {
    auto& [carrier, to, as, message] = one;
    flow::HandOver(state, names, carrier);
    state(to, as, message);
  });
  state(look_at);
}

void EndpointReplies::HandOver(StateStream& state, flow::CarrierNames& names, uint16_t version) {
  auto& [channels, replies, blocked] = *this;
  (void)channels;  // handed over by the endpoint
  if (state.reading()) blocked.clear();
  // All memory operations are done.
  if (!state.reading() && state.ok()) DropSilent();
  // Older versions know no replies that wait for window.
  if (!state.reading() && version < 3) UnblockAll();
  const auto reply_of = [&](Reply& reply) {
    auto& [carrier, to, for_group, syndrome, attempt, message, ticket, serial, ring_slot,
           has_receive] = reply;
    flow::HandOver(state, names, carrier);
    state(to, for_group, syndrome, attempt, message, ticket, serial, ring_slot, has_receive);
    state.Require(carrier != nullptr, "reply has no channel");
  };
  state.Ring(replies, kMostRepliesRead, reply_of);
  if (version < 3) return;
  state.Vector(blocked, kMostBlocked, [&](Blocked& one) {
    auto& [carrier, of_channel] = one;
    flow::HandOver(state, names, carrier);
    state.Ring(of_channel, kMostRepliesRead, [&, &expected = carrier](Reply& reply) {
      reply_of(reply);
      state.Require(reply.carrier == expected, "blocked reply has another channel");
    });
    state.Require(!of_channel.empty(), "channel has no blocked reply");
  });
}

void EndpointTarget::HandOver(StateStream& state, flow::CarrierNames& names) {
  const StateRecord record(state, StateKind::kEndpointTarget);
  auto& [receives, channels, in_flight, places, spare, replies, answers, serial, idle_at,
         idle_search_at, old_search_at, drains, reports, drained_by] = *this;
  (void)channels;  // handed over by the endpoint
  if (state.reading()) places.clear();
  HandOverMap(
      state, in_flight, kMostRead, [&, &queue = receives, &places = places](Key& key, Record& one) {
        auto& [carrier, source, number] = key;
        flow::HandOver(state, names, carrier);
        state(source, number);
        state.Require(carrier != nullptr, "message has no channel");
        if (state.reading() && carrier != nullptr) places.Add(carrier->peer());
        auto& [message, message_serial, ticket, attempt, has_receive, for_group, touched] = one;
        transport::HandOver(state, message);
        state(message_serial, ticket, attempt, has_receive, for_group, touched);
        // The first version kept receives that its error state had flushed.
        if (state.reading() && record.version() < 2 && has_receive)
          has_receive = queue.IsOpen(message.receive);
        state.Require(!state.reading() || !has_receive || queue.IsOpen(message.receive),
                      "message has no receive");
      });
  state.Vector(spare, kMostRead, [&, &queue = receives](uint32_t& number) {
    state(number);
    state.Require(!state.reading() || record.version() < 2 || queue.IsOpen(number),
                  "receive is not open");
  });
  if (state.reading() && record.version() < 2)
    std::erase_if(spare, [&queue = receives](uint32_t number) { return !queue.IsOpen(number); });
  replies.HandOver(state, names, record.version());
  // Older versions search for idle messages at once.
  if (record.version() >= 3) state(idle_search_at, old_search_at);
  answers.HandOver(state, names);
  state(serial);
  // While the endpoint drains, the time of its end stands in place of that of idle messages, which
  // is found anew.
  TimePoint next = drains ? drained_by : idle_at;
  if (record.version() >= 2) state(next, drains, reports);
  if (!state.reading()) return;
  idle_at = drains ? state.now() : next;
  drained_by = kNever;
  if (drains) drained_by = next == kNever ? state.now() + kLongestDrain : next;
}

void EndpointTombstone::HandOver(StateStream& state) {
  const StateRecord record(state, StateKind::kEndpointTombstone);
  auto& [handle, number, group, tenant, connection, results] = *this;
  state(handle, number, group, tenant, connection);
  HandOverMap(state, results, kMostRead, [&](uint32_t& serial, Result& result) {
    auto& [to, as, message, original] = result;
    state(serial, to, as, message, original);
  });
}

}  // namespace rocegw::transport
