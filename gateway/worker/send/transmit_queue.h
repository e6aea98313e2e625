// SPDX-License-Identifier: Apache-2.0
// Packets of this iteration in the order in which they leave, and the ports that they leave by.
// Belongs to one worker.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gateway/channel/channel_set.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/port/packet_port.h"
#include "gateway/worker/memory/flushed_memory.h"
#include "gateway/worker/send/frame_bundler.h"
#include "gateway/worker/send/outgoing.h"

namespace rocegw::worker {

// A worker's queue of each port, by device index.
using Ports = std::vector<port::PacketPort*>;

class TransmitQueue {
 public:
  // The arguments must outlive the queue, except `channels`, which is used in Transmit only.
  TransmitQueue(const Ports& ports, Scheduler& scheduler, channel::ChannelSet& channels,
                metrics::WorkerCounters& counters)
      : ports_(ports), scheduler_(scheduler), channels_(channels), counters_(counters) {}
  ~TransmitQueue();
  TransmitQueue(const TransmitQueue&) = delete;
  TransmitQueue& operator=(const TransmitQueue&) = delete;

  // Returns a packet to fill; nullptr: the port has no buffer.
  port::TxPacket* Acquire(uint32_t device) { return ports_[device]->Acquire(); }
  // Likewise, and counts and remembers that the port has none.
  port::TxPacket* NewPacket(uint32_t device);
  bool port_full() const { return port_full_; }
  void ForgetPortFull() { port_full_ = false; }
  // Takes ownership of packets.
  void Add(const Outgoing& out) {
    refer_ |= out.packet->refers();
    waiting_.push_back(out);
  }
  // Takes ownership of packets that refer to no payload.
  void Add(std::span<const Outgoing> out) {
    waiting_.insert(waiting_.end(), out.begin(), out.end());
  }
  // Returns a packet that is not sent to its port.
  void Release(const Outgoing& out) { ports_[out.device]->Release(out.packet); }

  // Copies payloads that waiting packets refer to, for a program that may reuse its memory now.
  void CopyPayloads();

  // Hands the packets to the ports, once the memory that they carry was read: frames that were
  // rebuilt would carry old bytes else. Keeps what a port does not take. No packet refers to a
  // program's memory afterwards, here or in a port. Returns true if a packet left.
  bool Transmit(FlushedMemory);

  // Ends the use of the account.
  void Forget(const Account* account);
  // Returns true if packets wait here.
  bool has_packets() const { return !waiting_.empty(); }
  // Returns true if packets wait here, or in a port for something else than the worker.
  bool busy() const { return !waiting_.empty() || ports_hold_; }

 private:
  void FlushPorts();
  // Moves packets of one burst from `begin` on to burst_, and bundles small ones of a channel.
  // Returns the end of the burst.
  size_t CollectBurst(size_t begin, bool contended);
  // Seals the packets of the burst that want it. Packets that cannot be sealed are released.
  void SealBurst(size_t begin);

  const Ports& ports_;
  Scheduler& scheduler_;
  channel::ChannelSet& channels_;
  metrics::WorkerCounters& counters_;
  std::vector<Outgoing> waiting_;
  std::vector<port::TxPacket*> burst_;
  FrameBundler bundler_;
  bool refer_ = false;  // waiting packets may refer to payloads
  bool ports_hold_ = false;
  bool port_full_ = false;
};

}  // namespace rocegw::worker
