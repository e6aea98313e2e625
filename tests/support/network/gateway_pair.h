// SPDX-License-Identifier: Apache-2.0
// Two gateways in one process: real workers over an in-memory wire, one session a side (or one for
// each of some pools) whose memory is a buffer of the test. With virtual time (Step) everything is
// deterministic; with threads (Start) the same objects run as in the daemon. Control messages are
// answered synchronously.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/memory/atomic_locks.h"
#include "gateway/port/pair_port.h"
#include "gateway/wire/gateway_mad.h"
#include "gateway/worker/worker_thread.h"
#include "tests/support/network/tamper_port.h"
#include "tests/support/qp/ring_end.h"

namespace rocegw::testing {

// How the sessions' memory is reached: a test's buffer, or as in the daemon (this process then
// stands for the client), by cross-process copy or through the same mapping.
enum class Reach { kBuffer, kCrossProcess, kDirect };

inline constexpr uint32_t kAllChannelFeatures =
    wire::kOptionChannel | wire::kOptionSelectiveAck | wire::kOptionCcMask;

struct GatewayPairOptions {
  size_t workers[2] = {1, 1};
  TamperScript* script = nullptr;  // mistreats what both sides receive (Step only)
  bool threads = false;
  worker::IdlePolicy idle;  // of threads
  flow::CcConfig congestion;
  size_t memory_bytes = 1 << 20;
  Reach reach = Reach::kBuffer;
  // By side: a session for each, numbered from 1. None: one session of no pool.
  std::vector<tenant::Share*> shares[2];
  // By side: of the same sessions, who touches their memory in the worker's place; nullptr: nobody.
  std::vector<memory::Copier*> copiers[2];
  worker::Scheduler::Clock clock = nullptr;
  // RC queue pairs ride on channels.
  bool channels = false;
  uint32_t channel_paths = 1;
  uint32_t channel_window = 4096;  // packets that a receiver takes ahead
  // What each side offers and takes, as wire::GatewayOption bits; 0: it knows nothing of channels,
  // though the other side thinks so.
  uint32_t channel_features[2] = {kAllChannelFeatures, kAllChannelFeatures};
};

class GatewayPair {
 public:
  explicit GatewayPair(const GatewayPairOptions& options);
  ~GatewayPair();

  // With threads.
  worker::WorkerThread& thread(int side, size_t worker) { return *sides_[side].threads[worker]; }

  // Where a session's memory begins, in its own addresses: with Reach::kBuffer always kBase.
  static constexpr uint64_t kBase = 0x10000000;
  uint64_t Base(int side) const;
  // The first session's keys; the n-th's are 2 * (n - 1) more.
  static constexpr uint32_t kKey[2] = {0x5AFE0001, 0x5AFE0002};
  static MemoryKey KeyOf(int side, uint32_t session) {
    return MemoryKey{kKey[side] + 2 * (session - 1)};
  }
  static wire::Gid GidOf(int side) { return wire::Gid::FromV4(0xC0000201u + side); }
  std::vector<uint8_t>& memory(int side) { return sides_[side].memory; }

  // Makes a QP on the worker that its QPN's bucket names.
  RingEnd& AddQp(int side, RingOptions options);
  // Takes two connected queue pairs of one type to RTS.
  void Connect(RingEnd& a, RingEnd& b, uint8_t path_mtu = 5, uint8_t min_rnr_timer = 1);
  // What Connect gave it.
  verbs::QpAttributes AttributesOf(int side, const RingEnd& end) const {
    return sides_[side].attributes.at(end.options().qpn);
  }
  void Remove(int side, RingEnd& end);
  // Where that end is reached by a channel.
  verbs::ChannelTarget TargetOf(int side, const RingEnd& end) const;
  // Reach::kBuffer: the side's program is gone, its memory with it; its session is still there.
  void EndProcess(int side);
  void Ring(int side, RingEnd& end);
  // Sets the leaf bit of the doorbell and not its summary bit.
  void SetLeafOnly(int side, RingEnd& end);

  // Virtual time: every worker runs once, then time moves on.
  void Step(Duration by = Microseconds(10));
  // One iteration of one worker, for benchmarks that time the two ends apart.
  bool RunWorker(int side, WorkerIndex worker, TimePoint now) {
    return sides_[side].workers[worker]->RunOnce(now);
  }
  rocegw_doorbell_page* page(int side, WorkerIndex worker, uint32_t session = 1) {
    return sides_[side].bells[session - 1][worker]->page.get();
  }
  // The eventfd that the session's program writes to wake the worker.
  int wake_fd(int side, WorkerIndex worker, uint32_t session = 1) const {
    return sides_[side].bells[session - 1][worker]->wake_fd;
  }
  const rocegw_worker_line* line(int side, WorkerIndex worker) const {
    return &sides_[side].bells[0][worker]->line;
  }
  TimePoint now() const { return now_; }

  worker::ControlReply Call(int side, WorkerIndex worker, worker::ControlMessage message);
  // Without an answer; false: the ring is full.
  bool Tell(int side, WorkerIndex worker, worker::ControlMessage message) {
    return sides_[side].links[worker]->to_worker.Push(std::move(message));
  }
  // What workers have said by themselves goes to `notices`.
  void TakeNotices();
  uint64_t Count(int side, metrics::Counter metrics::WorkerCounters::*counter) const;
  std::vector<worker::WorkerMessage> notices;

 private:
  // What one session and one worker share.
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
