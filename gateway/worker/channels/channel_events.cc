// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/channels/channel_events.h"

namespace rocegw::worker {

using Kind = WorkerObject::Kind;

flow::Resend ChannelEvents::BuildAgain(const flow::Carrier& carrier, const flow::FrameRef& frame,
                                       Psn psn) {
  const SlotHandle handle = frame.owner.slot();
  if (frame.owner.kind() == Kind::kStagedCarrier) return uses_.staged.SendAgain(handle, frame, psn);
  QpSlot* const slot = uses_.qps.FindLinked(handle);
  if (slot == nullptr || slot->session->failed) return flow::Resend::kVoid;
  const flow::Resend result = slot->qp->Again(uses_.outbox, carrier, frame, psn);
  uses_.activity.AfterEvent(*slot, handle);
  return result;
}

void ChannelEvents::OnArrived(const flow::Carrier& carrier, const flow::FrameRef& frame) {
  if (frame.owner.kind() == Kind::kStagedCarrier)
    return uses_.staged.OnArrived(frame.owner.slot(), frame);
  uses_.activity.OnArrived(carrier, frame);
}

void ChannelEvents::OnTurn(const flow::Carrier& carrier, WorkerObject member) {
  if (member.kind() == Kind::kStagedCarrier)
    return uses_.staged.OnTurn(member.slot(), uses_.round.now);
  uses_.activity.OnTurn(carrier, member.slot());
}

void ChannelEvents::OnChannelGone(const flow::Carrier& carrier, bool opened,
                                  wire::ChannelReason why) {
  for (QpSlot& slot : uses_.qps.slots()) {
    if (slot.session == nullptr) continue;
    const flow::Carrier* const staged = StagedFrames::On(*slot.session, carrier);
    const flow::Carrier& used = staged != nullptr ? *staged : carrier;
    if (!slot.qp->Uses(used)) continue;
    const transport::QpContext& qp = slot.qp->context();
    const ChannelBindings::Slots before = uses_.bindings.SlotsOf(qp);
    slot.qp->OnCarrierLost(uses_.outbox, used, opened, why, uses_.round.now);
    uses_.bindings.EndUnused(slot, before);
    // A queue pair that falls back to plain RoCEv2 has something to send.
    if (qp.declined != wire::ChannelReason::kNone) uses_.activity.MakeRunnable(slot, qp.handle);
    uses_.activity.AfterEvent(slot, qp.handle);
  }
  uses_.groups.OnCarrierLost(carrier);
  for (const channel::StagedCarrier* const staged : uses_.staged.AllOn(carrier))
    uses_.groups.OnCarrierLost(*staged);
  if (!opened || why == wire::ChannelReason::kUnknownChannel ||
      why == wire::ChannelReason::kStaleEpoch) {
    uses_.control.Notify({0, PeerChanged{carrier.peer()}});
  }
}

}  // namespace rocegw::worker
