// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/rnic/rnic.h"

#include <algorithm>
#include <cstring>

#include "gateway/wire/crc/icrc.h"

namespace rocegw::sim {
namespace {

using wire::NakCode;
using wire::Opcode;
using wire::Operation;

constexpr uint64_t kSendEvent = 0;  // other values: 1 + index of the queue pair whose timer expires
constexpr uint8_t kCnpTrafficClass = 48 << 2 | kEctZero;
constexpr uint8_t kRnrTimer = 6;  // 80 us
constexpr uint32_t kReadsAtOnce = 16;

// IBTA table 46, milliseconds times 100.
constexpr uint32_t kRnrHundredths[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                         16,    24,   32,   48,    64,    96,    128,   192,
                                         256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                         4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

uint32_t PacketsOf(uint32_t length, uint32_t mtu) { return std::max(1u, (length + mtu - 1) / mtu); }

Opcode DataOpcode(RnicOperation operation, bool first, bool last) {
  if (operation == RnicOperation::kSend) {
    return first  ? last ? Opcode::kRcSendOnly : Opcode::kRcSendFirst
           : last ? Opcode::kRcSendLast
                  : Opcode::kRcSendMiddle;
  }
  return first  ? last ? Opcode::kRcWriteOnly : Opcode::kRcWriteFirst
         : last ? Opcode::kRcWriteLast
                : Opcode::kRcWriteMiddle;
}

}  // namespace

Rnic::Rnic(Network& network, uint32_t number, const RnicConfig& config)
    : Endpoint(number), network_(network), config_(config), memory_(config.memory_bytes) {}

void Rnic::Attach(Link& uplink) { uplink_ = &uplink; }

size_t Rnic::Connect(const RnicConnection& connection) {
  auto qp = std::make_unique<Qp>(connection, config_, uplink_->config().bits_per_second);
  qp->una = qp->next = qp->most = connection.send_psn;
  qp->expected = connection.receive_psn;
  by_qpn_[connection.own_qpn] = qps_.size();
  qps_.push_back(std::move(qp));
  return qps_.size() - 1;
}

void Rnic::Post(size_t qp, const RnicRequest& request) {
  qps_[qp]->entries.push_back({.request = request});
  Wake(network_.now());
}

void Rnic::PostReceive(size_t qp, uint64_t id, uint64_t offset, uint32_t length) {
  qps_[qp]->receives.push_back({id, offset, length});
}

int64_t Rnic::RateOf(size_t qp) { return qps_[qp]->pace.Rate(network_.now()); }

uint8_t* Rnic::Local(uint64_t address, uint32_t rkey, uint64_t length) {
  if (rkey != key() || address < kBase || address - kBase > memory_.size() ||
      length > memory_.size() - (address - kBase)) {
    return nullptr;
  }
  return memory_.data() + (address - kBase);
}

void Rnic::Complete(size_t index, const RnicCompletion& completion) {
  if (on_completion_) on_completion_(index, completion);
}

// Sending.

void Rnic::Wake(TimePoint when) {
  when = std::max({when, network_.now(), free_at_});
  if (when >= wake_at_) return;
  wake_at_ = when;
  network_.queue().At(when, *this, kSendEvent);
}

void Rnic::OnEvent(uint64_t argument) {
  const TimePoint now = network_.now();
  if (argument == kSendEvent) {
    if (wake_at_ != now) return;
    wake_at_ = kNever;
    SendNext();
    return;
  }
  const size_t index = argument - 1;
  Qp& qp = *qps_[index];
  qp.timer_set = false;
  if (qp.una == qp.most) return;
  if (now - qp.progress_at >= config_.timeout) {
    ++counters_.timeouts;
    qp.progress_at = now;
    GoBack(qp, qp.una);
    Wake(now);
  }
  SetTimer(index);
}

void Rnic::SetTimer(size_t index) {
  Qp& qp = *qps_[index];
  if (qp.timer_set || qp.una == qp.most) return;
  qp.timer_set = true;
  network_.queue().At(qp.progress_at + config_.timeout, *this, 1 + index);
}

// Sends one packet if the cable is free.
void Rnic::SendNext() {
  const TimePoint now = network_.now();
  if (now < free_at_) return Wake(free_at_);
  if (!control_.empty()) {
    Control control = control_.front();
    control_.pop_front();
    const bool cnp = control.headers.bth.opcode == Opcode::kCnp;
    Put(*qps_[control.qp], control.headers, nullptr, 0, cnp ? kCnpTrafficClass : kEctZero);
    return Wake(free_at_);
  }
  TimePoint soonest = kNever;
  for (size_t i = 0; i < qps_.size(); ++i) {
    const size_t index = (turn_ + i) % qps_.size();
    Qp& qp = *qps_[index];
    const bool owes = !qp.answers.empty();
    if (!owes && qp.entries.empty()) continue;
    const TimePoint allowed = owes ? qp.may_send_at : std::max(qp.may_send_at, qp.not_ready_until);
    if (allowed > now) {
      soonest = Earlier(soonest, allowed);
      continue;
    }
    if (!SendOf(index, now)) continue;
    turn_ = index + 1;
    return Wake(free_at_);
  }
  if (soonest != kNever) Wake(soonest);
}

bool Rnic::SendOf(size_t index, TimePoint now) {
  Qp& qp = *qps_[index];
  if (!qp.answers.empty()) return SendAnswer(qp);
  return now >= qp.not_ready_until && SendRequest(index);
}

void Rnic::Sent(Qp& qp, uint32_t wire_bytes, TimePoint now) {
  if (!config_.congestion_control) return;
  qp.pace.OnSent(wire_bytes, now);
  const auto ns = static_cast<int64_t>(8e9 * wire_bytes / static_cast<double>(qp.pace.Rate(now)));
  qp.may_send_at = std::max(qp.may_send_at, now) + Nanoseconds(ns);
}

uint32_t Rnic::Put(Qp& qp, wire::Headers& headers, const uint8_t* payload, uint32_t length,
                   uint8_t traffic_class) {
  Packet* packet = network_.store().Get();
  headers.bth.dest_qpn = qp.connection.peer_qpn;
  headers.bth.pad_count = static_cast<uint8_t>(-length & 3);
  const size_t header_length = wire::EncodeHeaders(headers, packet->data);
  if (length != 0) std::memcpy(packet->data + header_length, payload, length);
  std::memset(packet->data + header_length + length, 0, headers.bth.pad_count);
  packet->length = static_cast<uint32_t>(header_length) + length + headers.bth.pad_count;
  packet->path = {.source = gid(),
                  .destination = qp.connection.peer,
                  .source_port = qp.connection.source_port,
                  .traffic_class = traffic_class};
  wire::SealIcrc(packet->path, ++ip_id_, packet->data, packet->length);
  packet->size = packet->length + wire::kIcrcLength;
  packet->number = network_.NextNumber();
  packet->meta = {.source = packet->path.source,
                  .destination = packet->path.destination,
                  .source_port = packet->path.source_port,
                  .traffic_class = traffic_class,
                  .ip_id_known = true,
                  .ip_id = ip_id_};
  const uint32_t bytes = packet->wire_bytes();
  free_at_ = uplink_->Send(packet, network_.now());
  return bytes;
}

bool Rnic::SendAnswer(Qp& qp) {
  Answer& answer = qp.answers.front();
  const uint32_t bytes = std::min(answer.left, qp.connection.mtu);
  const bool last = bytes == answer.left;
  wire::Headers headers;
  headers.bth.opcode = !answer.begun
                           ? last ? Opcode::kRcReadResponseOnly : Opcode::kRcReadResponseFirst
                       : last ? Opcode::kRcReadResponseLast
                              : Opcode::kRcReadResponseMiddle;
  headers.bth.psn = answer.next;
  headers.aeth = {wire::kSyndromeAck, qp.msn};
  const uint32_t wire_bytes = Put(qp, headers, memory_.data() + answer.offset, bytes, kEctZero);
  answer.begun = true;
  answer.next = answer.next + 1;
  answer.offset += bytes;
  answer.left -= bytes;
  if (last) qp.answers.pop_front();
  Sent(qp, wire_bytes, network_.now());
  return true;
}

bool Rnic::SendRequest(size_t index) {
  Qp& qp = *qps_[index];
  const TimePoint now = network_.now();
  const uint32_t mtu = qp.connection.mtu;
  // The entry with the next PSN, or the first without PSNs.
  uint32_t reads = 0;
  Entry* entry = nullptr;
  for (Entry& candidate : qp.entries) {
    const bool over = candidate.started && !PsnBefore(qp.next, candidate.first + candidate.psns);
    if (over) {
      reads += candidate.request.operation == RnicOperation::kRead ? 1 : 0;
      continue;
    }
    entry = &candidate;
    break;
  }
  if (entry == nullptr) return false;
  if (static_cast<uint32_t>(PsnDistance(qp.next, qp.una)) >= config_.window_packets) return false;
  const RnicRequest& request = entry->request;
  if (!entry->started) {
    entry->started = true;
    entry->first = qp.next;
    entry->psns = PacketsOf(request.length, mtu);
  }
  const auto done = static_cast<uint32_t>(PsnDistance(qp.next, entry->first));
  const uint32_t offset = done * mtu;
  wire::Headers headers;
  headers.bth.psn = qp.next;
  uint32_t psns = 1;
  uint32_t bytes = 0;
  if (request.operation == RnicOperation::kRead) {
    if (reads >= kReadsAtOnce) return false;
    psns = entry->psns - done;
    headers.bth.opcode = Opcode::kRcReadRequest;
    headers.bth.ack_request = true;
    headers.reth = {request.remote_address + offset, request.rkey, request.length - offset};
  } else {
    bytes = std::min(mtu, request.length - offset);
    const bool last = done + 1 == entry->psns;
    headers.bth.opcode = DataOpcode(request.operation, done == 0, last);
    headers.bth.ack_request = last || ++qp.since_ack_request >= config_.ack_every;
    if (headers.bth.ack_request) qp.since_ack_request = 0;
    headers.reth = {request.remote_address, request.rkey, request.length};
  }
  const uint32_t wire_bytes =
      Put(qp, headers, memory_.data() + request.offset + offset, bytes, kEctZero);
  ++counters_.data_packets;
  if (PsnBefore(qp.next, qp.most)) {
    ++counters_.retransmitted;
  } else {
    counters_.data_bytes += bytes;
  }
  if (qp.una == qp.most) qp.progress_at = now;
  qp.next = qp.next + psns;
  if (PsnAfter(qp.next, qp.most)) qp.most = qp.next;
  Sent(qp, wire_bytes, now);
  SetTimer(index);
  return true;
}

// Receiving.

void Rnic::Arrive(Packet* packet) {
  wire::RxPacket decoded;
  const wire::RxDatagram datagram{packet->meta, packet->bytes()};
  const metrics::DropReason reason = wire::Decode(datagram, decoded);
  const auto found = by_qpn_.find(packet->destination_qpn());
  if (reason != metrics::DropReason::kNone || found == by_qpn_.end() ||
      decoded.meta.source != qps_[found->second]->connection.peer) {
    ++counters_.dropped;
    network_.store().Put(packet);
    return;
  }
  const size_t index = found->second;
  Qp& qp = *qps_[index];
  const TimePoint now = network_.now();
  if (decoded.traits->service == wire::Service::kCnp) {
    ++counters_.cnps_received;
    qp.pace.OnCnp(now);
    network_.store().Put(packet);
    return;
  }
  const bool marked = (decoded.meta.traffic_class & kEcnMask) == kCongestionExperienced;
  if (marked && config_.congestion_control && qp.notify.OnMarked(config_.dcqcn, now)) {
    ++counters_.cnps_sent;
    Control control{.qp = index};
    control.headers.bth.opcode = Opcode::kCnp;
    control.headers.bth.migrated = false;
    control.headers.bth.becn = true;
    control_.push_back(control);
  }
  decoded.traits->is_request ? OnRequest(index, decoded) : OnResponse(index, decoded);
  network_.store().Put(packet);
  Wake(now);
}

void Rnic::QueueAck(size_t index, uint8_t syndrome, Psn psn) {
  Control control{.qp = index};
  control.headers.bth.opcode = Opcode::kRcAck;
  control.headers.bth.psn = psn;
  control.headers.aeth = {syndrome, qps_[index]->msn};
  control_.push_back(control);
}

void Rnic::OnRequest(size_t index, const wire::RxPacket& packet) {
  Qp& qp = *qps_[index];
  const wire::OpcodeTraits& traits = *packet.traits;
  const wire::Headers& headers = packet.headers;
  const Psn psn = headers.bth.psn;
  const auto length = static_cast<uint32_t>(packet.payload.size());
  const int32_t ahead = PsnDistance(psn, qp.expected);
  const bool read = traits.operation == Operation::kReadRequest;
  if (ahead > 0) {
    if (!qp.gap_answered) {
      qp.gap_answered = true;
      ++counters_.naks_sent;
      QueueAck(index, static_cast<uint8_t>(NakCode::kPsnSequence), qp.expected);
    }
    return;
  }
  if (ahead < 0 && !read) return QueueAck(index, wire::kSyndromeAck, qp.expected - 1);
  if (read) {
    const uint8_t* from = Local(headers.reth.address, headers.reth.rkey, headers.reth.length);
    if (from == nullptr && headers.reth.length != 0) {
      return QueueAck(index, static_cast<uint8_t>(NakCode::kRemoteAccess), psn);
    }
    const uint64_t offset = from == nullptr ? 0 : static_cast<uint64_t>(from - memory_.data());
    if (ahead < 0) {
      // Replaces the pending responses from that PSN on.
      std::erase_if(qp.answers, [&](const Answer& a) { return !PsnBefore(a.next, psn); });
    } else {
      qp.expected = psn + PacketsOf(headers.reth.length, qp.connection.mtu);
      qp.msn = (qp.msn + 1) & kPsnMask;
      qp.gap_answered = false;
    }
    qp.answers.push_back({.next = psn, .offset = offset, .left = headers.reth.length});
    return;
  }
  if (traits.operation == Operation::kSend) {
    if (qp.receives.empty()) {
      qp.gap_answered = true;
      return QueueAck(index, wire::kSyndromeRnr | kRnrTimer, psn);
    }
    Receive& receive = qp.receives.front();
    if (traits.starts_message()) receive.filled = 0;
    if (length > receive.length - receive.filled) {
      return QueueAck(index, static_cast<uint8_t>(NakCode::kInvalidRequest), psn);
    }
    std::copy(packet.payload.begin(), packet.payload.end(),
              memory_.begin() + static_cast<ptrdiff_t>(receive.offset + receive.filled));
    receive.filled += length;
  } else if (traits.operation == Operation::kWrite) {
    if (traits.starts_message()) {
      const uint8_t* to = Local(headers.reth.address, headers.reth.rkey, headers.reth.length);
      if (to == nullptr && headers.reth.length != 0) {
        return QueueAck(index, static_cast<uint8_t>(NakCode::kRemoteAccess), psn);
      }
      qp.write_offset = to == nullptr ? 0 : static_cast<uint64_t>(to - memory_.data());
      qp.write_left = headers.reth.length;
    }
    if (length > qp.write_left) {
      return QueueAck(index, static_cast<uint8_t>(NakCode::kInvalidRequest), psn);
    }
    std::copy(packet.payload.begin(), packet.payload.end(),
              memory_.begin() + static_cast<ptrdiff_t>(qp.write_offset));
    qp.write_offset += length;
    qp.write_left -= length;
  } else {
    return QueueAck(index, static_cast<uint8_t>(NakCode::kInvalidRequest), psn);
  }
  counters_.received_bytes += length;
  qp.expected = psn + 1;
  qp.gap_answered = false;
  if (traits.ends_message()) qp.msn = (qp.msn + 1) & kPsnMask;
  if (headers.bth.ack_request) QueueAck(index, wire::kSyndromeAck, psn);
  if (traits.ends_message() && traits.operation == Operation::kSend) {
    const Receive receive = qp.receives.front();
    qp.receives.pop_front();
    Complete(index, {receive.id, RnicOperation::kReceive, true, receive.filled});
  }
}

// Returns the first PSN that only a READ response can acknowledge; qp.most if there is none.
Psn Rnic::FirstReadPsn(const Qp& qp) const {
  for (const Entry& entry : qp.entries) {
    if (!entry.started) break;
    if (entry.request.operation != RnicOperation::kRead) continue;
    return PsnBefore(entry.first, qp.una) ? qp.una : entry.first;
  }
  return qp.most;
}

void Rnic::GoBack(Qp& qp, Psn to) {
  qp.next = to;
  qp.went_back = true;
}

void Rnic::Acknowledge(size_t index, Psn upto) {
  Qp& qp = *qps_[index];
  if (!PsnAfter(upto, qp.una)) return;
  qp.una = upto;
  if (PsnBefore(qp.next, qp.una)) qp.next = qp.una;
  qp.went_back = false;
  qp.progress_at = network_.now();
  while (!qp.entries.empty() && qp.entries.front().started &&
         !PsnBefore(qp.una, qp.entries.front().first + qp.entries.front().psns)) {
    const RnicRequest request = qp.entries.front().request;
    qp.entries.pop_front();
    Complete(index, {request.id, request.operation, true, request.length});
  }
}

void Rnic::OnResponse(size_t index, const wire::RxPacket& packet) {
  Qp& qp = *qps_[index];
  const Psn psn = packet.headers.bth.psn;
  if (PsnBefore(psn, qp.una) || !PsnBefore(psn, qp.most)) return;
  const Psn reading = FirstReadPsn(qp);
  if (packet.traits->operation == Operation::kReadResponse) {
    if (psn != reading) {
      if (!qp.went_back && PsnAfter(psn, reading)) GoBack(qp, reading);
      return;
    }
    const auto entry = std::find_if(qp.entries.begin(), qp.entries.end(), [&](const Entry& e) {
      return e.started && !PsnBefore(psn, e.first) && PsnBefore(psn, e.first + e.psns);
    });
    const uint32_t offset =
        static_cast<uint32_t>(PsnDistance(psn, entry->first)) * qp.connection.mtu;
    const RnicRequest& request = entry->request;
    if (packet.payload.size() != std::min(qp.connection.mtu, request.length - offset)) return;
    std::copy(packet.payload.begin(), packet.payload.end(),
              memory_.begin() + static_cast<ptrdiff_t>(request.offset + offset));
    counters_.received_bytes += packet.payload.size();
    return Acknowledge(index, psn + 1);
  }
  const wire::Aeth& aeth = packet.headers.aeth;
  const Psn covered = aeth.is_ack() ? psn + 1 : psn;
  const bool answer_lost = PsnAfter(covered, reading);
  Acknowledge(index, answer_lost ? reading : covered);
  if (aeth.is_ack()) {
    if (answer_lost && !qp.went_back) GoBack(qp, reading);
    return;
  }
  if (aeth.is_rnr()) {
    qp.not_ready_until =
        network_.now() + Microseconds(int64_t{kRnrHundredths[aeth.rnr_timer()]} * 10);
    return GoBack(qp, qp.una);
  }
  ++counters_.naks_received;
  if (aeth.syndrome == static_cast<uint8_t>(NakCode::kPsnSequence)) return GoBack(qp, qp.una);
  // A refusal: everything posted fails.
  while (!qp.entries.empty()) {
    const RnicRequest request = qp.entries.front().request;
    qp.entries.pop_front();
    Complete(index, {request.id, request.operation, false, 0});
  }
  qp.una = qp.next = qp.most;
}

}  // namespace rocegw::sim
