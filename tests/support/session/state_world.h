// SPDX-License-Identifier: Apache-2.0
// Worker with established queue pairs on channels to many peers, for tests and benchmarks that
// measure their cost. A second worker behind the in-memory port stands for all peers. Memory of
// programs (rings, completion queue, buffers) is allocated before the first queue pair, so that
// later growth is the gateways'. Virtual time; one thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gateway/memory/atomic_locks.h"
#include "gateway/port/pair_port.h"
#include "gateway/worker/worker.h"
#include "tests/support/qp/ring_end.h"

namespace rocegw::testing {

class StateWorld {
 public:
  // Limits of queue pairs and peers.
  StateWorld(uint32_t endpoints, uint32_t peers);
  ~StateWorld();

  // Sets a function that is called before (true) and after (false) each action of the gateway under
  // test, to count allocations.
  void Watch(void (*entering)(bool)) { entering_ = entering; }
  // Makes further queue pairs plain RoCEv2.
  void UseNative() { native_ = true; }

  // Moves a queue pair to RTS towards the peer, on a channel. Returns false if it was refused.
  bool Connect(uint32_t endpoint, uint32_t peer);
  // The same in steps: makes both ends; performs one transition of one end.
  bool Link(uint32_t endpoint);
  bool Modify(int side, uint32_t endpoint, uint32_t peer, verbs::QpState state);
  // Posts one SEND and one WRITE in each direction on each queue pair. Returns false if one of them
  // did not complete.
  bool Exchange(uint32_t first, uint32_t count);
  // Posts one WRITE on one side of a queue pair. Returns false if it did not complete.
  bool Write(int side, uint32_t endpoint);
  // Advances time without traffic.
  void Rest(Duration time);

  // Replaces the gateway under test, which has nothing in flight, by a fresh worker with its state.
  // Empty: the state was refused.
  struct HandOverTimes {
    double write_seconds;  // of CPU
    double read_seconds;
    size_t bytes;
  };
  std::optional<HandOverTimes> HandOver();

  const worker::Worker& gateway() const { return *sides_[0].worker; }
  metrics::WorkerCounters& counters() { return sides_[0].counters; }

  // Depth of send and receive queues.
  static constexpr uint32_t kRing = 16;

 private:
  struct Side {
    Side() : inbox(1) {}
    metrics::WorkerCounters counters;
    worker::WorkerInbox inbox;
    worker::WorkerLink link;
    rocegw_worker_line line{};
    std::vector<std::unique_ptr<RingEnd>> ends;
    std::unique_ptr<RingEnd> cq;
    std::vector<uint8_t> memory;
    std::unique_ptr<memory::MemorySpace> space;
    std::vector<std::unique_ptr<rocegw_doorbell_page>> pages;
    std::unique_ptr<worker::Worker> worker;
    int wake_fd = -1;
    int control_fd = -1;
  };
  int Call(int side, worker::ControlMessage message);  // errno
  // Calls a worker and keeps the message, for a fresh worker. Returns the errno.
  int Link(int side, const worker::ControlMessage& message);
  std::unique_ptr<worker::Worker> MakeWorker(int side);
  void Build(int side, uint32_t endpoints, uint32_t peers);
  void Step(Duration by);
  void Run(int side);
  void Post(int side, uint32_t endpoint, uint8_t opcode);
  void Ring(int side, uint32_t endpoint);
  static Qpn AcceptorOf();
  static wire::Gid GidOf(int side, uint32_t peer);
  static verbs::QpAttributes AttributesOf(int side, uint32_t endpoint, uint32_t peer);

  Side sides_[2];
  memory::AtomicLocks locks_;
  TimePoint now_{1'000'000'000};
  uint64_t cookie_ = 0;
  std::unique_ptr<port::PairLink> link_;
  std::vector<worker::ControlMessage> linked_;  // objects of the gateway under test
  void (*entering_)(bool) = nullptr;
  bool native_ = false;
};

}  // namespace rocegw::testing
