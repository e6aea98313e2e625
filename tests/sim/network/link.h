// SPDX-License-Identifier: Apache-2.0
// Direction of a cable with the output queue before it. Packets leave in order at the link's rate
// and arrive one propagation delay later. The queue drops packets that do not fit (tail drop) and
// marks (marking.h); the cable injects faults (faults.h).
//
// The departure time is known when a packet enters, so a packet costs one event per link, and the
// queue length at any time follows from the departures. Owned by its Network; one thread. Rates are
// bit/s, sizes are bytes on the cable (packet.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "tests/sim/network/event_queue.h"
#include "tests/sim/network/faults.h"
#include "tests/sim/network/marking.h"
#include "tests/sim/network/packet.h"

namespace rocegw::sim {

class Network;

// Receiver at the end of a link.
class Node {
 public:
  virtual ~Node() = default;
  // Takes the packet; forwards it or returns it to the store.
  virtual void Arrive(Packet* packet) = 0;
};

struct LinkConfig {
  int64_t bits_per_second = 100'000'000'000;
  Duration delay = Microseconds(1);
  uint64_t queue_bytes = 4 << 20;  // capacity of the output queue
  EcnRule ecn;
  HintRule hints;
};

struct LinkCounters {
  uint64_t packets = 0;  // departed, including lost ones
  uint64_t bytes = 0;
  uint64_t tail_drops = 0;
  uint64_t lost = 0;
  uint64_t lost_bytes = 0;
  uint64_t duplicated = 0;
  uint64_t delayed = 0;
  uint64_t corrupted = 0;
  uint64_t marked = 0;
  uint64_t queue_most = 0;
};

// Event of a packet at a link, for watchers.
enum class LinkEvent : uint8_t { kLeaves, kTailDrop, kLost, kArrives };

class Link final : public EventHandler {
 public:
  // Use Network::AddLink.
  Link(Network& network, uint32_t number, const LinkConfig& config, Node& to, std::string name);

  // Takes the packet, now or at `ready` if its sender needs time for it. Returns its departure
  // time, or the current time if the packet was dropped.
  TimePoint Send(Packet* packet, TimePoint ready);

  // Return the bytes and packets that wait or are being sent.
  uint64_t queued_bytes(TimePoint now);
  size_t queued_packets(TimePoint now);

  Faults& faults() { return faults_; }
  const LinkConfig& config() const { return config_; }
  const LinkCounters& counters() const { return counters_; }
  const std::string& name() const { return name_; }
  void Watch(std::function<void(LinkEvent, const Packet&)> watcher) {
    watcher_ = std::move(watcher);
  }

  void OnEvent(uint64_t argument) override;

 private:
  struct Departure {
    int64_t at_ps;
    uint32_t bytes;
  };
  struct Travelling {
    int64_t arrives;
    Packet* packet;
  };
  void Drain(TimePoint now);
  void Travel(Packet* packet, TimePoint left);
  void Deliver(Packet* packet);
  void Tell(LinkEvent event, const Packet& packet) {
    if (watcher_) watcher_(event, packet);
  }

  Network& network_;
  const uint32_t number_;
  LinkConfig config_;
  Node& to_;
  std::string name_;
  Faults faults_;
  LinkCounters counters_;
  int64_t ps_per_byte_x1024_;  // picoseconds for 1024 bytes
  int64_t free_at_ps_ = 0;
  uint64_t queued_ = 0;
  GrowingRing<Departure> departures_;
  GrowingRing<Travelling> travelling_;  // by arrival time
  std::vector<Packet*> late_;           // delayed packets, each with its own event
  std::vector<size_t> late_free_;
  std::function<void(LinkEvent, const Packet&)> watcher_;
};

}  // namespace rocegw::sim
