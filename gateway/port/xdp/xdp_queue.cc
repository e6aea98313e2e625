// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/xdp/xdp_queue.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace rocegw::port {
namespace {

// Bursts between two looks at the kernel's count of dropped frames, which costs a system call.
constexpr uint32_t kBurstsPerLook = 128;

constexpr uint64_t ChunkOf(uint64_t address) { return address & ~uint64_t{kXdpChunk - 1}; }

size_t LongestFrame(size_t max_datagram) {
  return kEthernetHeaderLength + kVlanTagLength + kMinIpUdpLength + max_datagram;
}

}  // namespace

XdpQueue::XdpQueue(const XdpQueueConfig& config)
    : config_(config),
      endpoint_({.max_datagram = config.max_datagram, .link = config.link}, *this, counters_),
      slots_(config.packets),
      ready_(kReady * config.chunks_per_packet) {
  free_.reserve(slots_.size());
  const size_t stride = config_.chunks_per_packet * kXdpChunk;
  for (size_t i = slots_.size(); i-- > 0;) {
    slots_[i].data = config_.memory->data() + config_.first_packet + i * stride + kDataOffset;
    free_.push_back(&slots_[i]);
  }
  sent_.reserve(slots_.size() * config_.chunks_per_packet);
  held_.reserve(2 * kBurst * (config_.chunks_per_packet + 1));
  held_looped_.reserve(kBurst);
  // A chunk holds less of a received frame than of a packet to send: the kernel's headroom takes a
  // part.
  if (LongestFrame(config_.max_datagram) > kXdpChunk - kXdpHeadroom)
    assembled_.resize(kBurst * LongestFrame(config_.max_datagram));
  for (const XdpReceiver& receiver : config_.receivers) {
    for (size_t i = 0; i < receiver.chunks; ++i)
      receiver.socket->rings().fill.Put(receiver.first_chunk + i * kXdpChunk);
    receiver.socket->rings().fill.Publish();
  }
}

XdpQueue::~XdpQueue() { endpoint_.Clear(); }

PortLimits XdpQueue::limits() const {
  return {.max_datagram = config_.max_datagram, .burst = kBurst};
}

TxPacket* XdpQueue::Acquire() {
  if (free_.empty()) Reclaim();
  if (free_.empty()) {
    // All packets may lie in the ring since the interface was down: without a packet the worker has
    // no reason to flush.
    (void)config_.transmitter->Kick();
    Reclaim();
  }
  if (free_.empty()) return nullptr;
  Slot* slot = free_.back();
  free_.pop_back();
  slot->Reset();
  return slot;
}

// Frees packets whose last chunk was sent.
void XdpQueue::Reclaim() {
  sent_.clear();
  config_.transmitter->Reclaim(config_.worker, sent_);
  for (const uint64_t address : sent_) {
    const size_t index = (address - config_.first_packet) / (config_.chunks_per_packet * kXdpChunk);
    if (index >= slots_.size()) continue;
    if (slots_[index].chunks_out != 0 && --slots_[index].chunks_out == 0) FreeSlot(slots_[index]);
  }
}

bool XdpQueue::HasRoom() {
  return ready_.MakeRoom(config_.chunks_per_packet, [this] { (void)SendReady(); });
}

// A descriptor lies within one chunk.
void XdpQueue::TakeFrame(FrameSlot& slot, size_t headers, size_t payload) {
  auto address = static_cast<uint64_t>(slot.data - headers - config_.memory->data());
  size_t left = headers + payload;
  size_t chunks = 0;
  while (left != 0) {
    const size_t piece = std::min(left, kXdpChunk - address % kXdpChunk);
    left -= piece;
    ready_.Add({.addr = address,
                .len = static_cast<uint32_t>(piece),
                .options = left != 0 ? kXdpContinues : 0});
    address += piece;
    ++chunks;
  }
  static_cast<Slot&>(slot).chunks_out = chunks;
}

bool XdpQueue::SendReady() {
  bool all = true;
  while (all && !ready_.empty()) {
    size_t taken = config_.transmitter->Submit(ready_.frames());
    if (taken == 0) {
      // The ring is full: the kernel has to take frames first.
      (void)config_.transmitter->Kick();
      taken = config_.transmitter->Submit(ready_.frames());
    }
    ready_.Sent(taken);
    all = taken != 0;
  }
  const auto sent = config_.transmitter->Kick();
  if (sent != XdpTransmitter::Sent::kNothing) counters_.tx_calls.Add();
  if (sent == XdpTransmitter::Sent::kPart) all = false;
  if (!all) counters_.tx_pushback.Add();
  return all;
}

bool XdpQueue::Flush() {
  if (endpoint_.waits()) endpoint_.Unpark();
  const bool all = SendReady();
  Reclaim();
  return all && !endpoint_.waits();
}

// Gives the chunks of the last Receive back to the kernel.
void XdpQueue::Recycle() {
  for (FrameSlot* slot : held_looped_) FreeSlot(*slot);
  held_looped_.clear();
  for (const Held& held : held_) held.socket->rings().fill.Put(held.chunk);
  held_.clear();
  for (const XdpReceiver& receiver : config_.receivers) {
    XdpRing<uint64_t>& fill = receiver.socket->rings().fill;
    fill.Publish();
    if (fill.needs_wakeup())
      (void)::recvfrom(receiver.socket->fd(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
  }
}

// Copies a frame of several chunks together. Returns nothing if it is longer than any frame of the
// MTU.
std::span<const uint8_t> XdpQueue::Assemble(XdpSocket& socket, uint32_t descriptors, size_t index) {
  if (assembled_.empty()) return {};
  const size_t most = assembled_.size() / kBurst;
  uint8_t* const frame = assembled_.data() + index * most;
  size_t length = 0;
  for (uint32_t i = 0; i < descriptors; ++i) {
    const xdp_desc piece = socket.rings().receive.Peek(i);
    if (length + piece.len > most) return {};
    std::memcpy(frame + length, config_.memory->data() + piece.addr, piece.len);
    length += piece.len;
  }
  return {frame, length};
}

// Appends datagrams to the first `count` of the burst. Returns the new count.
size_t XdpQueue::ReceiveFrom(const XdpReceiver& receiver, std::span<wire::RxDatagram> into,
                             size_t count) {
  XdpRing<xdp_desc>& ring = receiver.socket->rings().receive;
  size_t frames = 0;
  while (count < into.size() && frames < kBurst) {
    const uint32_t available = ring.Available();
    uint32_t descriptors = 1;
    while (descriptors <= available && (ring.Peek(descriptors - 1).options & kXdpContinues) != 0)
      ++descriptors;
    // Leaves a frame whose end is not there yet.
    if (descriptors > available) break;
    const xdp_desc first = ring.Peek(0);
    std::span<const uint8_t> frame(config_.memory->data() + first.addr, first.len);
    if (descriptors > 1) frame = Assemble(*receiver.socket, descriptors, count);
    if (frame.empty()) {
      endpoint_.RefuseOversized();
    } else if (endpoint_.Accept(frame, VlanOf(frame), into[count])) {
      ++count;
    }
    for (uint32_t i = 0; i < descriptors; ++i)
      held_.push_back({receiver.socket, ChunkOf(ring.Peek(i).addr)});
    ring.Release(descriptors);
    ++frames;
  }
  if (frames != 0) counters_.rx_calls.Add();
  return count;
}

void XdpQueue::CountDrops() {
  uint64_t drops = 0;
  for (const XdpReceiver& receiver : config_.receivers) drops += receiver.socket->Dropped();
  if (drops > drops_) counters_.rx_overflow.Add(drops - drops_);
  drops_ = drops;
}

size_t XdpQueue::Receive(std::span<wire::RxDatagram> into) {
  Recycle();
  into = into.first(std::min(into.size(), kBurst));
  size_t count = endpoint_.TakeLooped(into, held_looped_);
  const size_t looped = count;
  for (size_t i = 0; i < config_.receivers.size() && count < into.size(); ++i) {
    const size_t at = (next_receiver_ + i) % config_.receivers.size();
    count = ReceiveFrom(config_.receivers[at], into, count);
  }
  ++next_receiver_;
  if (count != looped && ++receives_ % kBurstsPerLook == 1) CountDrops();
  return count;
}

}  // namespace rocegw::port
