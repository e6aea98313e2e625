// SPDX-License-Identifier: Apache-2.0
// One gateway's worker that has established queue pairs on channels to many peers, for whoever asks
// what that costs: a real worker opposite another one, over the in-memory port, which stands for
// all peers. Everything that is a program's (rings, completion queue, memory) is made before the
// first queue pair, so that what grows afterwards is the gateways'. Time is virtual; one thread.
#pragma once

#include <memory>
#include <vector>

#include "gateway/memory/atomic_locks.h"
#include "gateway/port/pair_port.h"
#include "gateway/worker/worker.h"
#include "tests/support/qp/ring_end.h"

namespace rocegw::testing {

class StateWorld {
 public:
  // Room for so many queue pairs and peers.
  StateWorld(uint32_t endpoints, uint32_t peers);
  ~StateWorld();

  // Calls around everything that the gateway under test does, for who counts its allocations.
  void Watch(void (*entering)(bool)) { entering_ = entering; }
  // Queue pairs from now on are plain RoCEv2.
  void UseNative() { native_ = true; }

  // Brings a queue pair to RTS towards that peer, on a channel; false: it was refused.
  bool Connect(uint32_t endpoint, uint32_t peer);
  // In parts: makes both ends; one transition of one end.
  bool Link(uint32_t endpoint);
  bool Modify(int side, uint32_t endpoint, uint32_t peer, verbs::QpState state);
  // One SEND and one WRITE each way over each of these; false: something did not complete.
  bool Exchange(uint32_t first, uint32_t count);
  // Nothing happens for so long.
  void Rest(Duration time);

  const worker::Worker& gateway() const { return *sides_[0].worker; }
  metrics::WorkerCounters& counters() { return sides_[0].counters; }

  // Requests and receives that a queue pair holds at once.
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
  void Build(int side, uint32_t endpoints, uint32_t peers);
  void Step(Duration by);
  void Run(int side);
  void Post(int side, uint32_t endpoint, uint8_t opcode);
  static Qpn AcceptorOf();
  static wire::Gid GidOf(int side, uint32_t peer);
  static verbs::QpAttributes AttributesOf(int side, uint32_t endpoint, uint32_t peer);

  Side sides_[2];
  memory::AtomicLocks locks_;
  TimePoint now_{1'000'000'000};
  uint64_t cookie_ = 0;
  std::unique_ptr<port::PairLink> link_;
  void (*entering_)(bool) = nullptr;
  bool native_ = false;
};

}  // namespace rocegw::testing
