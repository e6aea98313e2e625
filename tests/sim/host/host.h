// SPDX-License-Identifier: Apache-2.0
// A virtual host: the workers of a gateway as the daemon runs them, on simulated NIC queues, and
// the rings and memory of the programs that are attached to it. A worker gets a turn (RunOnce) when
// something happened for it: a packet, a doorbell, a deadline, room in the NIC's queue; between
// turns the host costs nothing. A turn takes time (CpuCost), and until it is over the worker has no
// other.
//
// Owned by the test; made after its Network and destroyed before it. One thread. What programs do
// is up to Program objects, which look at their completion queues after every turn.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "gateway/flow/congestion.h"
#include "gateway/memory/memory_op.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/worker/worker.h"
#include "tests/sim/host/late_copier.h"
#include "tests/sim/host/sim_port.h"
#include "tests/sim/network/topology.h"
#include "tests/support/ring_end.h"

namespace rocegw::sim {

using testing::RingEnd;
using testing::RingOptions;

struct HostConfig {
  size_t workers = 1;
  NicConfig nic;
  CpuCost cpu;
  // Without a profile it gets the host's own: a copy of `cc_profile`, with the speed of the cable.
  flow::CcConfig congestion;
  flow::CcProfile cc_profile;
  flow::CcPolicy congestion_policy;
  // Of channels, the same: its kind is what both hosts' features have in common.
  flow::CcPolicy channel_policy;
  uint32_t channel_features = 0;  // wire::GatewayOption bits; 0: of kinds only that of `congestion`
  // Of the one program that all queue pairs belong to. Hosts may share memory that nobody checks.
  size_t memory_bytes = 1 << 20;
  std::span<uint8_t> shared_memory;
  // Nobody trusts that program: its memory is touched by a copier, which takes so long at most and
  // has so many batches of a worker at once. 0: by the workers themselves.
  Duration copier_latest;
  size_t copier_depth = 64;
  // Of what arrives, how much comes to another worker's queue than the queue pair's.
  double wrong_queue = 0;
  bool v6 = false;
  // Takes and opens channels to other gateways.
  bool channels = false;
  uint32_t channel_window = 4096;  // packets that a channel's receiver takes ahead
  uint32_t channel_paths = 1;      // channels side by side to the same worker
};

// How two queue pairs are connected; both ends alike.
struct ConnectionOptions {
  uint8_t path_mtu = 3;  // enum ibv_mtu: 3 is 1024 bytes, 5 is 4096
  uint8_t timeout = 14;  // 4.096 us * 2^timeout
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;      // without end
  uint8_t min_rnr_timer = 1;  // 10 us
  uint8_t rd_atomic = 8;
  uint8_t traffic_class = 0;  // an algorithm that wants marks makes its packets ECN capable
  bool channel = false;       // requests leave by channels; both hosts have them
};

class Program {
 public:
  virtual ~Program() = default;
  // After a turn of a worker of its host.
  virtual void Look(TimePoint now) = 0;
};

class Host final : public Endpoint, public EventHandler {
 public:
  Host(Network& network, uint32_t number, const HostConfig& config);
  ~Host() override;

  // The program's memory, in its own addresses and for the test.
  static constexpr uint64_t kBase = 0x10000000;
  uint32_t key() const { return 0x5AFE0000 + number(); }
  std::span<uint8_t> memory() { return memory_; }
  wire::Gid gid() const { return AddressOf(number(), config_.v6); }

  // Makes a queue pair on the worker that its QPN's bucket names. handle is its doorbell bit and
  // must be unique on the host.
  RingEnd& AddQp(const RingOptions& options);
  static void Connect(Host& a, RingEnd& qp_a, Host& b, RingEnd& qp_b,
                      const ConnectionOptions& options);
  // One end, towards any peer. Goes to RTS.
  void ConnectTo(RingEnd& own, const wire::Gid& peer, Qpn peer_qpn, Psn send_psn, Psn receive_psn,
                 const ConnectionOptions& options,
                 const std::optional<verbs::ChannelTarget>& channel = {});
  // An endpoint takes messages of who knows that key. Goes to RTS.
  void ReadyEndpoint(RingEnd& own, uint32_t key);
  // An endpoint of another host, by which the program's own may name it.
  void AddPeer(uint32_t handle, const Host& host, const RingEnd& endpoint, uint32_t key);
  // Where channels to a queue pair of this host lead, as discovery would tell its peer.
  verbs::ChannelTarget ChannelTo(Qpn qpn) const;
  void Remove(RingEnd& end);
  // After posting.
  void Ring(RingEnd& end);
  void Add(Program& program) { programs_.push_back(&program); }

  worker::ControlReply Call(WorkerIndex worker, worker::ControlMessage message);
  worker::Worker& worker(size_t index) { return *workers_[index]->worker; }
  SimPort& port(size_t index) { return workers_[index]->port; }
  uint64_t Count(metrics::Counter metrics::WorkerCounters::*counter) const;
  uint64_t DropCount(metrics::DropReason reason) const;
  // Packets for which a NIC's receive queue had no room.
  uint64_t overflows() const;
  uint64_t turns() const { return turns_; }
  // What workers have said by themselves.
  std::vector<worker::WorkerMessage> notices;

  // Endpoint, EventHandler
  void Attach(Link& uplink) override;
  void Arrive(Packet* packet) override;
  void OnEvent(uint64_t argument) override;

 private:
  class Memory final : public memory::MemorySpace {
   public:
    explicit Memory(std::span<uint8_t> bytes) : bytes_(bytes) {}
    size_t Execute(std::span<memory::MemoryOp> ops, memory::MemoryCounts& counts) override;

   private:
    std::span<uint8_t> bytes_;
  };
  struct One {
    One(Host& host, size_t inboxes);
    SimPort port;
    worker::WorkerLink link;
    metrics::WorkerCounters counters;
    worker::WorkerInbox inbox;
    rocegw_doorbell_page page{};
    rocegw_worker_line line{};
    std::unique_ptr<worker::Worker> worker;
    TimePoint free_at;
    TimePoint turn_at = kNever;
  };
  WorkerIndex WorkerOf(const RingEnd& end) const {
    return steering_.WorkerOf(Qpn{end.options().qpn});
  }
  void Schedule(size_t worker, TimePoint when);
  void Turn(size_t worker);
  void TakeNotices(One& one);

  Network& network_;
  const HostConfig config_;
  flow::CcProfile cc_profile_;
  std::vector<uint8_t> own_memory_;
  std::span<uint8_t> memory_;
  Memory space_;
  std::unique_ptr<LateCopier> copier_;
  port::SteeringTable steering_;
  Random random_;
  std::vector<std::unique_ptr<One>> workers_;
  std::vector<std::unique_ptr<RingEnd>> ends_;
  std::vector<Program*> programs_;
  uint64_t cookie_ = 0;
  uint64_t turns_ = 0;
};

}  // namespace rocegw::sim
