// SPDX-License-Identifier: Apache-2.0
// Peer rules that change while queue pairs run.
#include <map>

#include "gateway/worker/worker.h"

namespace rocegw::worker {

// Applies new peer rules. UD queue pairs and endpoints check the rules with each message; connected
// queue pairs are checked here.
ControlReply Worker::Do(const UsePeerRules& body, TimePoint now) {
  std::map<wire::Gid, uint32_t> revoked;
  for (QpSlot& slot : slots_) {
    if (slot.session == nullptr || slot.session->link.share != body.pool) continue;
    transport::QpContext& qp = slot.qp->context();
    qp.rare.peers = body.rules;
    const verbs::QpType type = qp.config.type;
    const bool connected =
        qp.receives() && type != verbs::QpType::kUd && type != verbs::QpType::kEndpoint;
    const wire::Gid peer = qp.attributes.path.destination;
    if (!connected || body.rules == nullptr || body.rules->Allow(peer)) continue;
    const SlotHandle handle = qp.handle;
    verbs::QpAttributes failed;
    failed.state = verbs::QpState::kError;
    if (slot.qp->Modify(*this, verbs::kAttrState, failed, now) != 0) continue;
    Event(qp, verbs::AsyncEvent::kQpFatal);
    ++revoked[peer];
    AfterEvent(slot, handle);
  }
  ControlReply reply;
  for (const auto& [peer, count] : revoked) reply.revoked.push_back({peer, count});
  return reply;
}

}  // namespace rocegw::worker
