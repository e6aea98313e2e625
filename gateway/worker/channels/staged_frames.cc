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

StagedCarrier* StagedFrames::Find(SlotHandle slot) {
  if (slot.index >= places_.size() || places_[slot.index].generation != slot.generation)
    return nullptr;
  return places_[slot.index].carrier.get();
}

flow::Carrier& StagedFrames::CarrierFor(WorkerSession& session, flow::Carrier& channel,
                                        uint32_t device, uint32_t tenant) {
  if (session.link.copier == nullptr) return channel;
  if (StagedCarrier* const known = On(session, channel)) return *known;
  auto place = std::ranges::find_if(places_, [](const Place& p) { return p.carrier == nullptr; });
  if (place == places_.end()) place = places_.emplace(place);
  const SlotHandle slot{static_cast<uint32_t>(place - places_.begin()), place->generation};
  const flow::LineMember me{{WorkerObject::Kind::kStagedCarrier, slot}, tenant};
  place->session = &session;
  place->carrier = std::make_unique<StagedCarrier>(channel, me, device, session.staged_shared);
  session.staged.push_back(place->carrier.get());
  return *place->carrier;
}

// Returns true if a staged frame must still be sent. Responses are sent even if their queue pair
// was destroyed. Requests are sent only while their queue pair still waits for them.
bool StagedFrames::IsWanted(const StagedCarrier& staged, const flow::FrameRef& frame) {
  if (transport::IsAnswer(transport::FrameKindOf(frame))) return true;
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
  const WorkerSession* const session = PlaceOf(staged).session;
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
    RemoveIfOver(PlaceOf(staged));
  }
}

void StagedFrames::OnChannelGone(const flow::Carrier& channel) {
  for (Place& place : places_) {
    if (place.carrier == nullptr || place.carrier->channel() != &channel) continue;
    place.carrier->OnChannelGone();
    RemoveIfOver(place);
  }
}

void StagedFrames::RemoveSession(WorkerSession& session) {
  for (StagedCarrier* const staged : session.staged) {
    Place& place = PlaceOf(*staged);
    staged->OnSessionGone();
    place.session = nullptr;
    RemoveIfOver(place);
  }
  session.staged.clear();
}

void StagedFrames::RemoveIfOver(Place& place) {
  if (!place.carrier->over() || place.carrier->listed()) return;
  if (place.session != nullptr) std::erase(place.session->staged, place.carrier.get());
  place.carrier.reset();
  place.session = nullptr;
  ++place.generation;
}

}  // namespace rocegw::worker
