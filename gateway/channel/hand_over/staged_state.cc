// SPDX-License-Identifier: Apache-2.0
// State of staged carriers for a gateway that takes over (gateway/hand_over/state_stream.h). Frames
// are handed over with their bytes: they were read from the program's memory, which may have
// changed since.
#include "gateway/channel/staged_carrier.h"
#include "gateway/flow/carrier_names.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/codec.h"

namespace rocegw::channel {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Limits of lists that buffers and the numbers of queue pairs bound otherwise.
constexpr uint32_t kMostFrames = 1u << 16;
constexpr uint32_t kMostMembers = 1u << 20;
// Bytes of the longest frame: a payload of any carrier with its headers and padding.
constexpr uint32_t kMostRoom = wire::kBthLength + wire::kMaxFrameLength + wire::kMaxPayload + 3;

}  // namespace

void StagedFrame::HandOver(StateStream& stream, uint32_t most) {
  // Members of the packet, then those of the frame; a new one changes a size.
  static_assert(sizeof(StagedFrame) == sizeof(port::TxPacket) + 56);
  auto& [at, bytes_used, refers_from, reference, crc, to, may_bundle, seal_of, payer, source,
         for_port] = static_cast<port::TxPacket&>(*this);
  // A staged frame holds its payload. What else is not carried is set for each transmission.
  (void)refers_from, (void)reference, (void)crc, (void)to, (void)may_bundle, (void)seal_of,
      (void)payer, (void)for_port;
  stream.Enum(state, State::kDropped);
  if (!stream.Require(state != State::kReading, "memory is being read")) return;
  flow::HandOver(stream, ref);
  room = stream.Carry(static_cast<uint32_t>(room), kMostRoom);
  stream(bytes_used, source, psn);
  const bool holds = state != State::kDropped;
  stream.Require(holds == (room != 0), "buffer of a frame is impossible");
  stream.Require(!holds || (bytes_used <= room && bytes_used <= most), "frame is too long");
  // A frame whose memory does not exist is empty, and never leaves.
  stream.Require(
      !holds || bytes_used > wire::kBthLength || (bytes_used == 0 && state == State::kReady),
      "frame is too short");
  if (!holds || !stream.ok()) return;
  if (stream.reading()) bytes = std::make_unique<uint8_t[]>(room);
  at = bytes.get();
  stream.Bytes({at, bytes_used});
}

void StagedCarrier::HandOver(StateStream& state) {
  const StateRecord record(state, StateKind::kStagedCarrier);
  auto& [channel, waiter, device, session, address, entry, holds, keeps, listed, counts_itself,
         next, used, leaving, reading, fresh, frames, waiting] = *this;
  // Links, what is the same for all carriers, and what the users and frames determine.
  (void)waiter, (void)device, (void)address, (void)holds, (void)keeps, (void)listed,
      (void)counts_itself, (void)used;
  state.Require(channel != nullptr, "the channel of a staged carrier is gone");
  state.Require(reading == 0 && fresh == nullptr, "memory is being read");
  if (!state.ok()) return;
  const uint32_t most = wire::kBthLength + wire::kMaxFrameLength + channel->max_payload() + 3;
  const bool has_session = state.Carry(session != nullptr);
  flow::HandOver(state, entry);
  state(next);
  leaving = state.Carry(static_cast<uint32_t>(leaving), kMostFrames);
  size_t total = 0;
  size_t heap = 0;
  size_t place = 0;
  state.Ring(frames, kMostFrames, [&, this](std::unique_ptr<StagedFrame>& frame) {
    if (state.reading()) frame = std::make_unique<StagedFrame>();
    frame->carrier = this;
    frame->HandOver(state, most);
    total += frame->room;
    heap += frame->cost();
    const bool left = place++ < leaving_;
    state.Require(left ? frame->state != StagedFrame::State::kReady
                       : frame->state != StagedFrame::State::kSent,
                  "order of frames is impossible");
  });
  state.Require(leaving <= frames.size() && total <= kMostHere, "frames are impossible");
  state.Ring(waiting, kMostMembers, [&](WorkerObject& member) { flow::HandOver(state, member); });
  if (!state.reading()) return;
  if (!state.ok()) {
    leaving = 0;
    frames.clear();
    return;
  }
  used = heap;
  // Frames of a closed session are released by the same list.
  if (busy()) BeBusy();
  if (has_session) {
    session->bytes += heap;
  } else {
    session = nullptr;
  }
  KeepChannel();
}

}  // namespace rocegw::channel
