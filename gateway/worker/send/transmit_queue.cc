// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/send/transmit_queue.h"

#include "gateway/wire/headers.h"

namespace rocegw::worker {

TransmitQueue::~TransmitQueue() {
  for (const Outgoing& out : waiting_) Release(out);
}

port::TxPacket* TransmitQueue::NewPacket(uint32_t device) {
  port::TxPacket* const packet = ports_[device]->Acquire();
  if (packet == nullptr) {
    counters_.tx_pushback_events.Add();
    port_full_ = true;
  }
  return packet;
}

void TransmitQueue::Forget(const Account* account) {
  for (Outgoing& out : waiting_) {
    if (out.account == account) out.account = nullptr;
  }
}

void TransmitQueue::CopyPayloads() {
  if (!refer_) return;
  refer_ = false;
  for (const Outgoing& out : waiting_) out.packet->Flatten();
}

// A port that still holds packets, for lack of space or of the neighbour's address, must be flushed
// again by this worker.
void TransmitQueue::FlushPorts() {
  ports_hold_ = false;
  for (port::PacketPort* port : ports_) ports_hold_ |= !port->Flush();
}

size_t TransmitQueue::CollectBurst(size_t begin, bool contended) {
  const uint32_t device = waiting_[begin].device;
  const Account* const account = waiting_[begin].account;
  burst_.clear();
  bool seals = false;
  bundler_.Begin(ports_[device]->limits());
  size_t end = begin;
  // With several active pools, the packets of each are transmitted and measured separately.
  for (; end < waiting_.size() && waiting_[end].device == device &&
         (!contended || waiting_[end].account == account);
       ++end) {
    port::TxPacket* packet = waiting_[end].packet;
    // Length 0: its payload could not be read, so the packet is void. A packet that was copied into
    // a bundle is not needed any more.
    if (packet->length == 0 || bundler_.Join(*packet)) {
      Release(waiting_[end]);
      continue;
    }
    const Account* const payer = waiting_[end].account;
    packet->pool = payer == nullptr ? PoolTag{} : payer->pool;
    waiting_[begin + burst_.size()] = waiting_[end];
    burst_.push_back(packet);
    seals |= packet->seal != 0;
  }
  if (seals) SealBurst(begin);
  if (bundler_.bundles() != 0) {
    counters_.channel_bundle_tx_packets.Add(bundler_.bundles());
    counters_.channel_bundled_tx_packets.Add(bundler_.entries());
  }
  return end;
}

void TransmitQueue::SealBurst(size_t begin) {
  size_t kept = 0;
  for (size_t i = 0; i < burst_.size(); ++i) {
    const Outgoing out = waiting_[begin + i];
    if (out.packet->seal != 0) out.packet->Flatten();
    if (out.packet->seal != 0 && !channels_.Seal(*out.packet)) {
      Release(out);
      continue;
    }
    waiting_[begin + kept] = out;
    burst_[kept++] = out.packet;
  }
  burst_.resize(kept);
}

bool TransmitQueue::Transmit(FlushedMemory) {
  if (waiting_.empty()) {
    if (ports_hold_) FlushPorts();
    return false;
  }
  scheduler_.Mark();
  size_t kept = 0;
  bool progress = false;
  const bool contended = scheduler_.contended();
  for (size_t begin = 0; begin < waiting_.size();) {
    const uint32_t device = waiting_[begin].device;
    Account* const account = waiting_[begin].account;
    port::PacketPort& port = *ports_[device];
    const size_t end = CollectBurst(begin, contended);
    uint64_t bytes = 0, referring = 0, referred_bytes = 0;
    for (const port::TxPacket* packet : burst_) {
      bytes += packet->length + wire::kIcrcLength;
      if (!packet->refers()) continue;
      ++referring;
      referred_bytes += packet->outside.length;
    }
    const size_t taken = port.Transmit(burst_);
    for (size_t i = taken; i < burst_.size(); ++i) {
      bytes -= burst_[i]->length + wire::kIcrcLength;
      if (burst_[i]->refers()) {
        --referring;
        referred_bytes -= burst_[i]->outside.length;
      }
      burst_[i]->Flatten();
      waiting_[kept++] = waiting_[begin + i];
    }
    counters_.tx_packets.Add(taken);
    counters_.tx_bytes.Add(bytes);
    if (referring != 0) {
      counters_.memory_reference_operations.Add(referring);
      counters_.memory_reference_bytes.Add(referred_bytes);
    }
    if (taken < burst_.size()) counters_.tx_pushback_events.Add();
    progress |= taken != 0;
    begin = end;
    if (!contended) continue;
    port.Flush();
    if (account == nullptr) {
      scheduler_.ChargeNobody();
    } else {
      scheduler_.ChargeTo(*account);
    }
  }
  waiting_.resize(kept);
  refer_ = false;
  FlushPorts();
  return progress;
}

}  // namespace rocegw::worker
