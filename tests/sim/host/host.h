// SPDX-License-Identifier: Apache-2.0
// Virtual host: the workers of a gateway as the daemon runs them, on simulated NIC queues, and the
// rings and memory of the attached programs. A worker runs an iteration (RunOnce) when there is an
// event for it: a packet, a doorbell, a deadline, or space in the NIC's queue; otherwise the host
// costs nothing. An iteration takes time (CpuCost), during which the worker runs no other.
//
// Owned by the test; made after its Network and destroyed before it. One thread. Program objects
// decide what programs do; they poll their completion queues after every iteration.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gateway/flow/congestion.h"
#include "gateway/memory/memory_op.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/worker/worker.h"
#include "tests/sim/host/late_copier.h"
#include "tests/sim/host/sim_port.h"
#include "tests/sim/network/topology.h"
#include "tests/support/copy_engine/fake_copy_queue.h"
#include "tests/support/network/buffer_memory.h"
#include "tests/support/qp/ring_end.h"

namespace rocegw::sim {

using testing::RingEnd;
using testing::RingOptions;

struct HostConfig {
  size_t workers = 1;
  NicConfig nic;
  CpuCost cpu;
  // If no profile is set, the host uses a copy of `cc_profile` with the speed of the cable.
  flow::CcConfig congestion;
  flow::CcProfile cc_profile;
  flow::CcPolicy congestion_policy;
  // The same for channels, whose algorithm is one that both hosts' features include.
  flow::CcPolicy channel_policy;
  uint32_t channel_features = 0;  // wire::GatewayOption bits; 0: only the kind of `congestion`
  // Memory of the single program that owns all queue pairs. Hosts may share memory if no test
  // checks it.
  size_t memory_bytes = 1 << 20;
  std::span<uint8_t> shared_memory;
  // Untrusted program: a copier accesses its memory, with at most this delay and this many batches
  // per worker. 0: the workers access the memory.
  Duration copier_latest;
  size_t copier_depth = 64;
  // Trusted program whose memory is mapped: each worker has a copy engine that is late, reorders
  // and fails as this seed says; 0: none.
  uint64_t copy_engine = 0;
  // Share of arriving packets that reach another worker's queue than the queue pair's.
  double wrong_queue = 0;
  bool v6 = false;
  // The host opens and accepts channels.
  bool channels = false;
  bool bundles = false;            // offers and accepts bundles, if channel_features is 0
  uint32_t channel_window = 4096;  // packets that a channel's receiver accepts ahead
  uint32_t channel_paths = 1;      // channels side by side to the same worker
  FleetKeys keys;                  // at the start
};

// Parameters of a connection; the same for both ends.
struct ConnectionOptions {
  uint8_t path_mtu = 3;  // enum ibv_mtu: 3 is 1024 bytes, 5 is 4096
  uint8_t timeout = 14;  // 4.096 us * 2^timeout
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;      // unlimited
  uint8_t min_rnr_timer = 1;  // 10 us
  uint8_t rd_atomic = 8;
  uint8_t traffic_class = 0;  // an algorithm that uses marks adds ECT(0)
  bool channel = false;       // requests leave by channels; both hosts must have them
};

class Program {
 public:
  virtual ~Program() = default;
  // Called after an iteration of a worker of its host.
  virtual void Look(TimePoint now) = 0;
};

class Host final : public Endpoint, public EventHandler {
 public:
  Host(Network& network, uint32_t number, const HostConfig& config);
  ~Host() override;

  // The program's memory: start address for the program, and access for the test.
  static constexpr uint64_t kBase = 0x10000000;
  uint32_t key() const { return 0x5AFE0000 + number(); }
  std::span<uint8_t> memory() { return memory_; }
  wire::Gid gid() const { return AddressOf(number(), config_.v6); }

  // Makes a queue pair on the worker that its QPN's bucket names. `handle` is its doorbell bit and
  // must be unique on the host.
  RingEnd& AddQp(const RingOptions& options);
  static void Connect(Host& a, RingEnd& qp_a, Host& b, RingEnd& qp_b,
                      const ConnectionOptions& options);
  // Connects one end to any peer and moves it to RTS.
  void ConnectTo(RingEnd& own, const wire::Gid& peer, Qpn peer_qpn, Psn send_psn, Psn receive_psn,
                 const ConnectionOptions& options,
                 const std::optional<verbs::ChannelTarget>& channel = {});
  // Moves an endpoint to RTS; it accepts messages with that key.
  void ReadyEndpoint(RingEnd& own, uint32_t key);
  // Makes an endpoint of another host known to the program's endpoints by the handle.
  void AddPeer(uint32_t handle, const Host& host, const RingEnd& endpoint, uint32_t key);
  // Returns the destination of channels to a queue pair of this host, as discovery would report it
  // to its peer.
  verbs::ChannelTarget ChannelTo(Qpn qpn) const;
  void Remove(RingEnd& end);
  // Rings the doorbell after posting.
  void Ring(RingEnd& end);
  void Add(Program& program) { programs_.push_back(&program); }

  // Replaces every worker by a fresh one, as if another gateway took over: each worker rests, then
  // a new one is linked with the same objects and reads its state (Worker::HandOver). Returns at
  // once; the workers take nothing new until all rest. Does nothing while an earlier replacement is
  // in progress.
  void ReplaceWorkers();
  // Number of replacements, and the reason of the first one that failed; empty: none.
  uint64_t replacements() const { return replacements_; }
  const std::string& replacement_failure() const { return replacement_failure_; }

  // Objects that HandOver wrote, and those that it left.
  struct HandedOver {
    uint64_t objects = 0;
    uint64_t left = 0;
    uint64_t bytes = 0;
    std::string failure;  // empty: none
  };
  // Writes the state of each object (gateway/hand_over), destroys the object and reads the state
  // into a fresh one, as if another gateway took over. Objects with outstanding memory operations,
  // and kinds that are not handed over yet, are left. Called between iterations of the workers.
  HandedOver HandOver();

  worker::ControlReply Call(WorkerIndex worker, worker::ControlMessage message);
  worker::Worker& worker(size_t index) { return *workers_[index]->worker; }
  SimPort& port(size_t index) { return workers_[index]->port; }
  uint64_t Count(metrics::Counter metrics::WorkerCounters::*counter) const;
  uint64_t DropCount(metrics::DropReason reason) const;
  // Returns the number of packets that NIC receive queues dropped.
  uint64_t overflows() const;
  uint64_t turns() const { return turns_; }
  // Messages that workers have sent unasked.
  std::vector<worker::WorkerMessage> notices;

  // Endpoint, EventHandler
  void Attach(Link& uplink) override;
  void Arrive(Packet* packet) override;
  void OnEvent(uint64_t argument) override;

 private:
  struct One {
    One(Host& host, size_t inboxes);
    SimPort port;
    worker::WorkerLink link;
    // A fresh worker has counters of its own.
    std::unique_ptr<metrics::WorkerCounters> counters = std::make_unique<metrics::WorkerCounters>();
    worker::WorkerInbox inbox;
    rocegw_doorbell_page page{};
    rocegw_worker_line line{};
    std::unique_ptr<testing::FakeCopyQueue> engine;
    std::unique_ptr<worker::Worker> worker;
    std::vector<worker::ControlMessage> linked;  // messages that link a fresh worker
    bool rests = false;                          // while the workers are replaced
    TimePoint free_at;
    TimePoint turn_at = kNever;
  };
  WorkerIndex WorkerOf(const RingEnd& end) const {
    return steering_.WorkerOf(Qpn{end.options().qpn});
  }
  std::unique_ptr<worker::Worker> MakeWorker(size_t index);
  channel::ChannelOptions Channels(size_t index, const SecretKey& secret) const;
  // Keeps a message that links an object, and forgets those that it undoes.
  static void Remember(One& one, const worker::ControlMessage& message);
  void LinkFresh(size_t index, worker::Worker& fresh);
  bool Replace(size_t index);
  void ReplaceResting();
  void Exchange(std::unique_ptr<transport::QueuePair>& queue_pair, HandedOver& result);
  flow::CcConfig Congestion() const;
  void Schedule(size_t worker, TimePoint when);
  void Turn(size_t worker);
  void TakeNotices(One& one);

  Network& network_;
  const HostConfig config_;
  flow::CcProfile cc_profile_;
  std::vector<uint8_t> own_memory_;
  std::span<uint8_t> memory_;
  testing::BufferMemory space_;
  std::unique_ptr<LateCopier> copier_;
  port::SteeringTable steering_;
  Random random_;
  std::vector<std::unique_ptr<One>> workers_;
  std::vector<std::unique_ptr<RingEnd>> ends_;
  std::vector<Program*> programs_;
  uint64_t cookie_ = 0;
  uint64_t turns_ = 0;
  bool replacing_ = false;
  uint64_t replacements_ = 0;
  std::string replacement_failure_;
};

}  // namespace rocegw::sim
