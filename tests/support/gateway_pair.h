// SPDX-License-Identifier: Apache-2.0
// Two gateways in one process: real workers over an in-memory wire, one session a side whose memory
// is a buffer of the test. With virtual time (Step) everything is deterministic; with threads
// (Start) the same objects run as in the daemon. Control messages are answered synchronously.
#pragma once

#include <memory>
#include <vector>

#include "gateway/memory/atomic_locks.h"
#include "gateway/port/pair_port.h"
#include "gateway/worker/worker_thread.h"
#include "tests/support/ring_end.h"
#include "tests/support/tamper_port.h"

namespace rocegw::testing {

// How the sessions' memory is reached: a test's buffer, or as in the daemon (this process then
// stands for the client), by cross-process copy or through the same mapping.
enum class Reach { kBuffer, kCrossProcess, kDirect };

struct GatewayPairOptions {
  size_t workers[2] = {1, 1};
  TamperScript* script = nullptr;  // mistreats what both sides receive (Step only)
  bool threads = false;
  flow::CcConfig congestion;
  size_t memory_bytes = 1 << 20;
  Reach reach = Reach::kBuffer;
};

class GatewayPair {
 public:
  explicit GatewayPair(const GatewayPairOptions& options);
  ~GatewayPair();

  // Where a session's memory begins, in its own addresses: with Reach::kBuffer always kBase.
  static constexpr uint64_t kBase = 0x10000000;
  uint64_t Base(int side) const;
  static constexpr uint32_t kKey[2] = {0x5AFE0001, 0x5AFE0002};
  static wire::Gid GidOf(int side) { return wire::Gid::FromV4(0xC0000201u + side); }
  std::vector<uint8_t>& memory(int side) { return sides_[side].memory; }

  // Makes a QP on the worker that its QPN's bucket names.
  RingEnd& AddQp(int side, RingOptions options);
  // Takes two RC queue pairs to RTS.
  void Connect(RingEnd& a, RingEnd& b, uint8_t path_mtu = 5);
  void Remove(int side, RingEnd& end);
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
  rocegw_doorbell_page* page(int side, WorkerIndex worker) {
    return sides_[side].pages[worker].get();
  }
  const rocegw_worker_line* line(int side, WorkerIndex worker) const {
    return sides_[side].lines[worker].get();
  }
  TimePoint now() const { return now_; }

  worker::ControlReply Call(int side, WorkerIndex worker, worker::ControlMessage message);
  // Leaves a message for the worker, without an answer; it runs with the worker's next iteration.
  void Post(int side, WorkerIndex worker, worker::ControlMessage message);
  uint64_t Count(int side, metrics::Counter metrics::WorkerCounters::*counter) const;
  std::vector<worker::WorkerMessage> notices;

 private:
  struct Side {
    std::vector<uint8_t> memory;
    std::unique_ptr<memory::MemorySpace> space;
    std::vector<std::unique_ptr<TamperPort>> tampered;
    std::vector<std::unique_ptr<worker::WorkerLink>> links;
    std::vector<std::unique_ptr<metrics::WorkerCounters>> counters;
    std::vector<std::unique_ptr<worker::WorkerInbox>> inboxes;
    std::vector<std::unique_ptr<worker::Worker>> workers;
    std::vector<std::unique_ptr<worker::WorkerThread>> threads;
    std::vector<std::unique_ptr<rocegw_doorbell_page>> pages;
    std::vector<std::unique_ptr<rocegw_worker_line>> lines;
    std::vector<int> wake_fds;
    int control_fd = -1;
    port::SteeringTable steering;
    std::vector<std::unique_ptr<RingEnd>> ends;
  };
  WorkerIndex WorkerOf(int side, const RingEnd& end) const {
    return sides_[side].steering.WorkerOf(Qpn{end.options().qpn});
  }
  void BuildSide(int side, const GatewayPairOptions& options);

  memory::AtomicLocks locks_;
  TimePoint now_{1000000000};
  uint64_t cookie_ = 0;
  std::unique_ptr<port::PairLink> link_;
  Side sides_[2];
  Reach reach_;
  bool threads_;
};

}  // namespace rocegw::testing
