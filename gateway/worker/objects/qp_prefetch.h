// SPDX-License-Identifier: Apache-2.0
// Prefetching of queue pairs that are used soon. A worker with many queue pairs finds most of their
// cache lines outside of its caches; fetching them for a whole burst at once costs about the time
// of one fetch. The steps of one queue pair depend on each other, so a burst takes them one after
// the other for all its queue pairs. Reads only; belongs to one worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/port/steering.h"
#include "gateway/transport/message/frame_packet.h"
#include "gateway/wire/channel_bundle.h"
#include "gateway/wire/opcode.h"
#include "gateway/worker/objects/qp_table.h"

namespace rocegw::worker {

class QpBurst {
 public:
  static constexpr size_t kMost = 64;

  explicit QpBurst(QpTable& qps) : qps_(qps) {}

  // Adds the receiver of a native datagram, or of a channel's frame that comes alone. The bytes are
  // not checked yet.
  void Add(std::span<const uint8_t> datagram) {
    if (datagram.size() < wire::kBthLength) return;
    const wire::OpcodeTraits& traits = wire::TraitsOf(datagram[0]);
    if (traits.operation == wire::Operation::kChannelFrame)
      return Add(wire::BundleEntry{.body = datagram.subspan(wire::kBthLength)});
    const bool send = traits.operation == wire::Operation::kSend;
    Add(port::DestinationQpn(datagram), send                ? NextEvent::kSend
                                        : traits.is_request ? NextEvent::kRequest
                                                            : NextEvent::kAnswer);
  }
  // Adds the receiver of a frame in a bundle.
  void Add(const wire::BundleEntry& frame) {
    const wire::FrameKind kind = wire::PeekKind(frame);
    const bool send = kind == wire::FrameKind::kSend;
    Add(wire::PeekDestination(frame.body), send                        ? NextEvent::kSend
                                           : transport::IsAnswer(kind) ? NextEvent::kAnswer
                                                                       : NextEvent::kRequest);
  }
  // Prefetches what is touched by the datagrams or frames added. One queue pair alone is used at
  // once, so nothing is gained.
  void PrefetchReceivers() {
    if (count_ < 2) return;
    size_t found = 0;
    for (size_t i = 0; i < count_; ++i) {
      const SlotHandle* const handle = qps_.HandleOf(numbers_[i]);
      if (handle == nullptr) continue;
      events_[found] = events_[i];
      slots_[found++] = qps_.PrefetchSlot(*handle);
    }
    PrefetchObjects(found);
  }
  // Prefetches what the next turns of queue pairs touch, of at most kMost.
  void PrefetchTurns(std::span<const SlotHandle> handles) {
    if (handles.size() < 2) return;
    size_t found = 0;
    for (const SlotHandle handle : handles) {
      const QpSlot* const slot = qps_.PrefetchSlot(handle);
      if (slot == nullptr) continue;
      events_[found] = NextEvent::kTurn;
      slots_[found++] = slot;
    }
    PrefetchObjects(found);
  }

 private:
  using NextEvent = transport::NextEvent;

  // Adds the queue pair with this number, if there is one and the burst has space.
  void Add(Qpn qpn, NextEvent event) {
    if (count_ == kMost || qpn == last_) return;
    last_ = qpn;
    qps_.PrefetchHandle(qpn);
    events_[count_] = event;
    numbers_[count_++] = qpn;
  }
  void PrefetchObjects(size_t found) {
    for (size_t i = 0; i < found; ++i) __builtin_prefetch(slots_[i]->qp.get());
    ForEach(found, [](const transport::QueuePair& qp, NextEvent event) { qp.Prefetch(event); });
    ForEach(found,
            [](const transport::QueuePair& qp, NextEvent event) { qp.PrefetchLinks(event); });
    ForEach(found, [](const transport::QueuePair& qp, NextEvent event) { qp.PrefetchFar(event); });
  }
  template <typename F>
  void ForEach(size_t found, F prefetch) {
    for (size_t i = 0; i < found; ++i)
      if (slots_[i]->qp != nullptr) prefetch(*slots_[i]->qp, events_[i]);
  }

  QpTable& qps_;
  Qpn last_ = kInvalidQpn;
  size_t count_ = 0;
  std::array<Qpn, kMost> numbers_;
  std::array<NextEvent, kMost> events_;
  std::array<const QpSlot*, kMost> slots_;
};

}  // namespace rocegw::worker
