// SPDX-License-Identifier: Apache-2.0
// Two gateways in one process: production workers over an in-memory wire. Each side has one
// session, or one for each of several pools, whose memory is a buffer of the test. With virtual
// time (Step) each run is deterministic; with threads (Start) the same objects run as in the
// daemon. Control messages are answered synchronously.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/memory/atomic_locks.h"
#include "gateway/memory/copy_engine.h"
#include "gateway/port/pair_port.h"
#include "gateway/wire/gateway_mad.h"
#include "gateway/worker/worker_thread.h"
#include "tests/support/network/tamper_port.h"
#include "tests/support/qp/ring_end.h"

namespace rocegw::testing {

// Access to the sessions' memory: a buffer of the test, or as in the daemon by cross-process copy
// or through a shared mapping. In the latter two cases this process is also the client.
enum class Reach { kBuffer, kCrossProcess, kDirect };

inline constexpr uint32_t kAllChannelFeatures =
    wire::kOptionChannel | wire::kOptionSelectiveAck | wire::kOptionCcMask | wire::kOptionBundles;

struct GatewayPairOptions {
  size_t workers[2] = {1, 1};
  TamperScript* script = nullptr;  // applied to received packets of both sides (Step only)
  bool threads = false;
  worker::WorkerWaiting waiting;  // used by threads
  flow::CcConfig congestion;
  size_t memory_bytes = 1 << 20;
  Reach reach = Reach::kBuffer;
  // By side: one session for each share, numbered from 1. Empty: one session without a pool.
  std::vector<tenant::Share*> shares[2];
  // By side and session: copier that accesses the memory for the worker; nullptr: the worker does.
  std::vector<memory::Copier*> copiers[2];
  // By side: the first worker's copy engine.
  memory::CopySettings engines[2];
  // port::PairConfig: limit of packets between two queues, and payloads by reference.
  size_t queue_depth = 0;
  uint32_t outside_from = port::TxPacket::kNeverOutside;
  worker::Scheduler::Clock clock = nullptr;
  worker::Scheduler::Clock processor_time = nullptr;
  // RC queue pairs use channels.
  bool channels = false;
  uint32_t channel_paths = 1;
  uint32_t channel_window = 4096;  // packets that a receiver accepts ahead of a gap
  // wire::GatewayOption bits that each side offers and accepts; 0: the side has no channels,
  // although the other side assumes them.
  uint32_t channel_features[2] = {kAllChannelFeatures, kAllChannelFeatures};
};

class GatewayPair {
 public:
  explicit GatewayPair(const GatewayPairOptions& options);
  ~GatewayPair();

  // Valid with threads.
  worker::WorkerThread& thread(int side, size_t worker) { return *sides_[side].threads[worker]; }

  // Returns the address of the session's memory in the session; kBase with Reach::kBuffer.
  static constexpr uint64_t kBase = 0x10000000;
  uint64_t Base(int side) const;
  // Keys of the first session, by side. Those of session n are larger by 2 * (n - 1).
  static constexpr uint32_t kKey[2] = {0x5AFE0001, 0x5AFE0002};
  static MemoryKey KeyOf(int side, uint32_t session) {
    return MemoryKey{kKey[side] + 2 * (session - 1)};
  }
  static wire::Gid GidOf(int side) { return wire::Gid::FromV4(0xC0000201u + side); }
  std::vector<uint8_t>& memory(int side) { return sides_[side].memory; }

  // Makes a queue pair on the worker to which steering sends its QPN.
  RingEnd& AddQp(int side, RingOptions options);
  // Connects two queue pairs of one type and moves them to RTS.
  void Connect(RingEnd& a, RingEnd& b, uint8_t path_mtu = 5, uint8_t min_rnr_timer = 1);
  // Returns the attributes that Connect set.
  verbs::QpAttributes AttributesOf(int side, const RingEnd& end) const {
    return sides_[side].attributes.at(end.options().qpn);
  }
  void Remove(int side, RingEnd& end);
  // Returns the address of that end for a channel.
  verbs::ChannelTarget TargetOf(int side, const RingEnd& end) const;
  // Simulates the death of the side's program, with Reach::kBuffer: accesses to its memory fail,
  // and its session stays.
  void EndProcess(int side);
  void Ring(int side, RingEnd& end);
  // Sets the leaf bit of the doorbell without its summary bit.
  void SetLeafOnly(int side, RingEnd& end);

  // Runs each worker once and advances virtual time.
  void Step(Duration by = Microseconds(10));
  // Runs one iteration of one worker, for benchmarks that measure both ends separately.
  bool RunWorker(int side, WorkerIndex worker, TimePoint now) {
    return sides_[side].workers[worker]->RunOnce(now);
  }
  worker::Worker& worker(int side, size_t index) { return *sides_[side].workers[index]; }
  rocegw_doorbell_page* page(int side, WorkerIndex worker, uint32_t session = 1) {
    return sides_[side].bells[session - 1][worker]->page.get();
  }
  // Returns the eventfd that the session's program writes to wake the worker.
  int wake_fd(int side, WorkerIndex worker, uint32_t session = 1) const {
    return sides_[side].bells[session - 1][worker]->wake_fd;
  }
  const rocegw_worker_line* line(int side, WorkerIndex worker) const {
    return &sides_[side].bells[0][worker]->line;
  }
  TimePoint now() const { return now_; }

  worker::ControlReply Call(int side, WorkerIndex worker, worker::ControlMessage message);
  // Sends a message without waiting for an answer. Returns false if the ring is full.
  bool Tell(int side, WorkerIndex worker, worker::ControlMessage message) {
    return sides_[side].links[worker]->to_worker.Push(std::move(message));
  }
  // Moves messages that workers sent on their own to `notices`.
  void TakeNotices();
  uint64_t Count(int side, metrics::Counter metrics::WorkerCounters::*counter) const;
  // Returns the number of packets that the side's workers dropped for that reason.
  uint64_t Drops(int side, metrics::DropReason reason) const;
  std::vector<worker::WorkerMessage> notices;

 private:
  // Memory that one session and one worker share.
  struct Bells {
    std::unique_ptr<rocegw_doorbell_page> page = std::make_unique<rocegw_doorbell_page>();
    rocegw_worker_line line{};
    int wake_fd = -1;
  };
  struct Side {
    std::vector<uint8_t> memory;
    std::unique_ptr<memory::MemorySpace> space;
    std::vector<std::unique_ptr<TamperPort>> tampered;
    std::vector<std::unique_ptr<worker::WorkerLink>> links;
    std::vector<std::unique_ptr<metrics::WorkerCounters>> counters;
    std::vector<std::unique_ptr<worker::WorkerInbox>> inboxes;
    std::vector<std::unique_ptr<worker::Worker>> workers;
    std::vector<std::unique_ptr<worker::WorkerThread>> threads;
    std::vector<std::vector<std::unique_ptr<Bells>>> bells;  // by session, worker
    int control_fd = -1;
    port::SteeringTable steering;
    std::vector<std::unique_ptr<RingEnd>> ends;
    std::unordered_map<uint32_t, verbs::QpAttributes> attributes;  // by QPN
  };
  WorkerIndex WorkerOf(int side, const RingEnd& end) const {
    return sides_[side].steering.WorkerOf(Qpn{end.options().qpn});
  }
  Bells& BellsOf(int side, const RingEnd& end) {
    return *sides_[side].bells[end.options().session - 1][WorkerOf(side, end)];
  }
  void UseChannels(int side, WorkerIndex worker);
  void BuildSide(int side, const GatewayPairOptions& options);
  void LinkSession(int side, WorkerIndex worker, SessionId session, tenant::Share* share,
                   memory::Copier* copier);

  memory::AtomicLocks locks_;
  TimePoint now_{1000000000};
  uint64_t cookie_ = 0;
  std::unique_ptr<port::PairLink> link_;
  Side sides_[2];
  Reach reach_;
  bool threads_;
  bool channels_;
  uint32_t channel_paths_;
  uint32_t channel_window_;
  uint32_t channel_features_[2];
};

}  // namespace rocegw::testing
