// SPDX-License-Identifier: Apache-2.0
// Frames of untrusted sessions: the copier reads their payload before they enter a channel that
// others share (channel/staged_carrier.h).
#include <algorithm>

#include "gateway/transport/message/frame_packet.h"
#include "gateway/worker/worker.h"

namespace rocegw::worker {

using channel::StagedCarrier;
using channel::StagedFrame;

port::TxPacket* Worker::NewFrame(transport::QpContext& qp, flow::Carrier& carrier,
                                 uint32_t payload) {
  if (OwnerOf(qp).link.copier == nullptr) return NewPacket(qp);
  StagedFrame& frame = static_cast<StagedCarrier&>(carrier).NewFrame(payload);
  frame.source_qpn = qp.config.qpn;
  return &frame;
}

void Worker::SendFrame(transport::QpContext& qp, flow::Carrier&, port::TxPacket* packet) {
  WorkerSession& session = OwnerOf(qp);
  if (session.link.copier == nullptr) return Send(qp, packet);
  scheduler_.OnSent(*session.account, packet->length + wire::kIcrcLength);
  auto& frame = static_cast<StagedFrame&>(*packet);
  if (!session.MustWait()) return frame.carrier->OnReady(frame);
  session.reading.push_back(&frame);
  ListOps(session);
}

StagedCarrier* Worker::StagedOn(const WorkerSession& session, const flow::Carrier& channel) {
  for (StagedCarrier* const staged : session.staged)
    if (staged->channel() == &channel) return staged;
  return nullptr;
}

StagedCarrier* Worker::StagedBy(SlotHandle handle) {
  const uint32_t index = handle.index & ~kStagedHandle;
  if (index >= staged_.size() || staged_[index].generation != handle.generation) return nullptr;
  return staged_[index].carrier.get();
}

// Returns the carrier that the session's queue pairs use for the channel.
flow::Carrier& Worker::CarrierFor(transport::QpContext& qp, channel::Channel& channel) {
  WorkerSession& session = OwnerOf(qp);
  if (session.link.copier == nullptr) return channel;
  if (StagedCarrier* const known = StagedOn(session, channel)) return *known;
  auto place = std::ranges::find_if(staged_, [](const Staged& s) { return s.carrier == nullptr; });
  if (place == staged_.end()) place = staged_.emplace(place);
  const auto index = static_cast<uint32_t>(place - staged_.begin());
  const flow::LineMember me{{index | kStagedHandle, place->generation}, qp.config.tenant_tag};
  place->session = &session;
  place->carrier =
      std::make_unique<StagedCarrier>(channel, me, channel.device(), session.staged_shared);
  session.staged.push_back(place->carrier.get());
  return *place->carrier;
}

// Returns true if a staged frame must still be sent. Responses are sent even if their queue pair
// was destroyed. Requests are sent only while their queue pair still waits for them.
bool Worker::IsWanted(const StagedCarrier& staged, const flow::FrameRef& frame) {
  if (transport::IsAnswer(transport::FrameKindOf(frame))) return true;
  const QpSlot* const slot = Slot(frame.owner);
  return slot != nullptr && slot->qp->Wants(staged, frame);
}

bool Worker::SendStaged(TimePoint now) {
  bool sent = false;
  staged_wants_packet_ = false;
  for (StagedCarrier* const staged : busy_staged_) {
    if (!staged->in_line() && !staged_wants_packet_) sent |= SendStaged(*staged, now);
  }
  return sent;
}

bool Worker::SendStaged(StagedCarrier& staged, TimePoint now) {
  if (staged.Next() == nullptr) return false;
  WorkerSession* const session = staged_[staged.handle().index & ~kStagedHandle].session;
  Account* const account = session == nullptr ? nullptr : session->account;
  bool sent = false;
  scheduler_.Mark();
  while (const flow::FrameRef* const frame = staged.Next()) {
    if (staged.NextIsEmpty() || !IsWanted(staged, *frame)) {
      NoteArrived(staged, *frame);
      staged.DropNext();
      continue;
    }
    if (!staged.MayLeave(now)) break;
    port::TxPacket* const packet = NewChannelPacket(staged.device());
    if (packet == nullptr) {
      counters_.tx_pushback_events.Add();
      staged_wants_packet_ = true;
      break;
    }
    staged.Leave(*packet, now);
    outgoing_.push_back({packet, staged.device(), account});
    sent = true;
  }
  if (account == nullptr) {
    scheduler_.ChargeNobody();
  } else {
    scheduler_.ChargeTo(*account);
  }
  return sent;
}

flow::Resend Worker::SendStagedAgain(const flow::FrameRef& frame, Psn psn) {
  const StagedCarrier* const staged = StagedBy(frame.owner);
  const flow::FrameRef* const sent = staged == nullptr ? nullptr : staged->Sent(frame.message);
  if (sent == nullptr || !IsWanted(*staged, *sent)) return flow::Resend::kVoid;
  port::TxPacket* const packet = NewChannelPacket(staged->device());
  if (packet == nullptr) return flow::Resend::kPortFull;
  staged->SendAgain(frame.message, psn, *packet);
  SendChannelPacket(staged->device(), packet);
  if (QpSlot* const slot = Slot(sent->owner)) slot->qp->OnSentAgain(*sent);
  return flow::Resend::kDone;
}

// Releases acknowledged frames and gives their window to waiting queue pairs.
void Worker::ForgetStaged() {
  for (size_t i = 0; i < busy_staged_.size();) {
    StagedCarrier& staged = *busy_staged_[i];
    staged.Forget();
    for (int given = 0; staged.HasTurn(given); ++given) {
      const SlotHandle handle = staged.NextTurn();
      QpSlot* const slot = Slot(handle);
      if (slot == nullptr || slot->session == nullptr) continue;
      slot->qp->OnTurn(staged);
      MakeRunnable(*slot, handle);
    }
    if (staged.busy()) {
      ++i;
      continue;
    }
    staged.LeaveBusy();
    busy_staged_[i] = busy_staged_.back();
    busy_staged_.pop_back();
    EndIfOver(staged_[staged.handle().index & ~kStagedHandle]);
  }
}

void Worker::EndStaged(const flow::Carrier& channel) {
  for (Staged& place : staged_) {
    if (place.carrier == nullptr || place.carrier->channel() != &channel) continue;
    place.carrier->OnChannelGone();
    EndIfOver(place);
  }
}

void Worker::EndStaged(WorkerSession& session) {
  for (StagedCarrier* const staged : session.staged) {
    Staged& place = staged_[staged->handle().index & ~kStagedHandle];
    staged->OnSessionGone();
    place.session = nullptr;
    EndIfOver(place);
  }
  session.staged.clear();
}

void Worker::EndIfOver(Staged& place) {
  if (!place.carrier->over() || place.carrier->listed()) return;
  if (place.session != nullptr) std::erase(place.session->staged, place.carrier.get());
  place.carrier.reset();
  place.session = nullptr;
  ++place.generation;
}

}  // namespace rocegw::worker
