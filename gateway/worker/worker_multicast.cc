// SPDX-License-Identifier: Apache-2.0
// Multicast datagrams (IBTA 9.8.3, annex A17): a copy to every attached queue pair, but never to
// the sender.
#include <algorithm>
#include <cerrno>

#include "gateway/worker/worker.h"

namespace rocegw::worker {

using metrics::DropReason;

ControlReply Worker::Do(const Multicast& body) {
  const std::pair key(body.device, body.group);
  if (body.attached) {
    multicast_[key].push_back(body.qpn);
    return {};
  }
  const auto group = multicast_.find(key);
  if (group == multicast_.end() || std::erase(group->second, body.qpn) == 0) return Failed(ENOENT);
  if (group->second.empty()) multicast_.erase(group);
  return {};
}

// Handles a datagram that the port delivered once: hands it to every worker with receivers.
void Worker::OnMulticast(uint32_t device, const wire::RxDatagram& datagram, TimePoint now) {
  const auto group = multicast_.find({device, datagram.meta.destination});
  if (group == multicast_.end()) {
    counters_.Drop(DropReason::k_unknown_qpn);
    return;
  }
  std::vector<bool> receives(options_.inboxes.size());
  for (const Qpn member : group->second) {
    const WorkerIndex owner = options_.steering.WorkerOf(member);
    if (owner < receives.size()) receives[owner] = true;
  }
  for (size_t owner = 0; owner < receives.size(); ++owner) {
    if (receives[owner] && owner != options_.index)
      HandOver(static_cast<WorkerIndex>(owner), device, datagram);
  }
  if (receives[options_.index]) OnDatagram(device, datagram, now);
}

DropReason Worker::ToGroup(uint32_t device, const wire::RxPacket& packet, TimePoint now) {
  if (packet.traits->service != wire::Service::kUd) return DropReason::k_wrong_service;
  const auto group = multicast_.find({device, packet.meta.destination});
  if (group == multicast_.end()) return DropReason::k_unknown_qpn;
  for (const Qpn member : group->second) {
    if (options_.steering.WorkerOf(member) != options_.index) continue;
    const DropReason reason = ToMember(member, device, packet, now);
    if (reason != DropReason::kNone) counters_.Drop(reason);
  }
  return DropReason::kNone;
}

DropReason Worker::ToMember(Qpn member, uint32_t device, const wire::RxPacket& packet,
                            TimePoint now) {
  QpSlot* const slot = SlotOf(member);
  if (slot != nullptr && packet.headers.deth.source_qpn == member) {
    const verbs::GidTable* const own = slot->qp->context().rare.gids;
    const bool from_us = own != nullptr && std::find(own->entries.begin(), own->entries.end(),
                                                     packet.meta.source) != own->entries.end();
    if (from_us) return DropReason::kNone;
  }
  wire::RxPacket copy = packet;
  copy.headers.bth.dest_qpn = member;
  return ToQueuePair(device, copy, now);
}

}  // namespace rocegw::worker
