// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/channels/staged_frames.h"

#include <algorithm>

#include "gateway/transport/message/frame_packet.h"

namespace rocegw::worker {

using channel::StagedCarrier;

StagedCarrier* StagedFrames::On(const WorkerSession& session, const flow::Carrier& channel) {
  for (StagedCarrier* const staged : session.staged)
    if (staged->channel() == &channel) return staged;
  return nullptr;
}

std::vector<StagedCarrier*> StagedFrames::AllOn(const flow::Carrier& channel) const {
  std::vector<StagedCarrier*> all;
  for (const StagedSlot& slot : slots_) {
    if (slot.carrier != nullptr && slot.carrier->channel() == &channel)
      all.push_back(slot.carrier.get());
  }
  return all;
}

StagedCarrier* StagedFrames::Find(SlotHandle slot) {
  if (slot.index >= slots_.size() || slots_[slot.index].generation != slot.generation)
    return nullptr;
  return slots_[slot.index].carrier.get();
}

flow::Carrier& StagedFrames::CarrierFor(WorkerSession& session, flow::Carrier& channel,
                                        uint32_t device, uint32_t tenant) {
  if (session.link.copier == nullptr) return channel;
  if (StagedCarrier* const known = On(session, channel)) return *known;
  auto staged_slot =
      std::ranges::find_if(slots_, [](const StagedSlot& p) { return p.carrier == nullptr; });
  if (staged_slot == slots_.end()) staged_slot = slots_.emplace(staged_slot);
  const SlotHandle slot{static_cast<uint32_t>(staged_slot - slots_.begin()),
                        staged_slot->generation};
  const flow::WindowWaiter me{{WorkerObject::Kind::kStagedCarrier, slot}, tenant};
  staged_slot->session = &session;
  staged_slot->carrier =
      std::make_unique<StagedCarrier>(channel, me, device, session.staged_shared);
  session.staged.push_back(staged_slot->carrier.get());
  return *staged_slot->carrier;
}

// Returns true if a staged frame must still be sent. Responses are sent even if their queue pair
// was destroyed, and requests that want none, which are complete. Other requests are sent only
// while their queue pair still waits for them.
bool StagedFrames::IsWanted(const StagedCarrier& staged, const flow::FrameRef& frame) {
  if (transport::IsAnswer(transport::FrameKindOf(frame)) || transport::WantsNoReply(frame))
    return true;
  const QpSlot* const slot = uses_.qps.Find(frame.owner.slot());
  return slot != nullptr && slot->qp->Wants(staged, frame);
}

bool StagedFrames::Send(TimePoint now) {
  bool sent = false;
  wants_packet_ = false;
  for (StagedCarrier* const staged : busy_) {
    if (!staged->in_line() && !wants_packet_) sent |= Send(*staged, now);
  }
  return sent;
}

bool StagedFrames::Send(StagedCarrier& staged, TimePoint now) {
  if (staged.Next() == nullptr) return false;
  const WorkerSession* const session = SlotOf(staged).session;
  Account* const account = session == nullptr ? nullptr : session->account;
  bool sent = false;
  uses_.scheduler.Mark();
  while (const flow::FrameRef* const frame = staged.Next()) {
    if (staged.NextIsEmpty() || !IsWanted(staged, *frame)) {
      uses_.activity.OnArrived(staged, *frame);
      staged.DropNext();
      continue;
    }
    if (!staged.MayLeave(now)) break;
    port::TxPacket* const packet = uses_.transmit.Acquire(staged.device());
    if (packet == nullptr) {
      uses_.counters.tx_pushback_events.Add();
      wants_packet_ = true;
      break;
    }
    staged.Leave(*packet, now);
    uses_.transmit.Add({packet, staged.device(), account});
    sent = true;
  }
  if (account == nullptr) {
    uses_.scheduler.ChargeNobody();
  } else {
    uses_.scheduler.ChargeTo(*account);
  }
  return sent;
}

flow::Resend StagedFrames::SendAgain(SlotHandle slot, const flow::FrameRef& frame, Psn psn) {
  const StagedCarrier* const staged = Find(slot);
  const flow::FrameRef* const sent = staged == nullptr ? nullptr : staged->Sent(frame.message);
  if (sent == nullptr || !IsWanted(*staged, *sent)) return flow::Resend::kVoid;
  port::TxPacket* const packet = uses_.transmit.Acquire(staged->device());
  if (packet == nullptr) return flow::Resend::kPortFull;
  staged->SendAgain(frame.message, psn, *packet);
  uses_.transmit.Add({packet, staged->device()});
  if (QpSlot* const owner = uses_.qps.Find(sent->owner.slot())) owner->qp->OnSentAgain(*sent);
  return flow::Resend::kDone;
}

void StagedFrames::OnArrived(SlotHandle slot, const flow::FrameRef& frame) {
  const StagedCarrier* const staged = Find(slot);
  const flow::FrameRef* const own = staged == nullptr ? nullptr : staged->Sent(frame.message);
  if (own != nullptr) uses_.activity.OnArrived(*staged, *own);
}

void StagedFrames::OnTurn(SlotHandle slot, TimePoint now) {
  StagedCarrier* const staged = Find(slot);
  if (staged == nullptr) return;
  staged->OnTurn();
  // At once, because others would take the window that made this its turn.
  Send(*staged, now);
}

void StagedFrames::ReleaseArrived() {
  for (size_t i = 0; i < busy_.size();) {
    StagedCarrier& staged = *busy_[i];
    staged.Forget();
    for (int given = 0; staged.HasTurn(given); ++given)
      uses_.activity.OnTurn(staged, staged.NextTurn().slot());
    if (staged.busy()) {
      ++i;
      continue;
    }
    staged.LeaveBusy();
    busy_[i] = busy_.back();
    busy_.pop_back();
    RemoveIfDone(SlotOf(staged));
  }
}

void StagedFrames::OnChannelGone(const flow::Carrier& channel) {
  for (StagedSlot& staged_slot : slots_) {
    if (staged_slot.carrier == nullptr || staged_slot.carrier->channel() != &channel) continue;
    staged_slot.carrier->OnChannelGone();
    RemoveIfDone(staged_slot);
  }
}

void StagedFrames::RemoveSession(WorkerSession& session) {
  for (StagedCarrier* const staged : session.staged) {
    StagedSlot& staged_slot = SlotOf(*staged);
    staged->OnSessionGone();
    staged_slot.session = nullptr;
    RemoveIfDone(staged_slot);
  }
  session.staged.clear();
}

void StagedFrames::RemoveIfDone(StagedSlot& staged_slot) {
  if (!staged_slot.carrier->over() || staged_slot.carrier->listed()) return;
  if (staged_slot.session != nullptr)
    std::erase(staged_slot.session->staged, staged_slot.carrier.get());
  staged_slot.carrier.reset();
  staged_slot.session = nullptr;
  ++staged_slot.generation;
}

}  // namespace rocegw::worker
