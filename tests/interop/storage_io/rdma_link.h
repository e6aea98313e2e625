// SPDX-License-Identifier: Apache-2.0
// What initiator and target share of RDMA: an event channel that is polled, and the objects of one
// connection. Made as SPDK makes them: one event channel for the life of the program, everything
// else on the device of the id, gone with it. One thread.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rocegw::storage_io {

// Ends the program with status 2.
[[noreturn]] void Die(const char* what);

struct CmEvent {
  rdma_cm_event_type type;
  int status;
  rdma_cm_id* id;
  rdma_cm_id* listener;
};

class EventChannel {
 public:
  EventChannel();
  ~EventChannel() { rdma_destroy_event_channel(channel_); }
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;

  rdma_event_channel* get() { return channel_; }
  // Returns the next event, acknowledged. Dies if the channel is readable a hundred times in a row
  // without an event: a program that sleeps in poll(2) would spin.
  std::optional<CmEvent> Poll();
  // Waits until an event comes, at most so long.
  void Wait(int milliseconds);

 private:
  rdma_event_channel* channel_;
  int without_event_ = 0;
};

// Objects of one connection. Destroys all of them but the id.
class Queue {
 public:
  Queue(rdma_cm_id* id, uint32_t sends, uint32_t receives);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  rdma_cm_id* id() const { return id_; }
  // The region lives as long as the queue.
  ibv_mr* Register(void* memory, size_t bytes);
  void PostReceive(uint64_t wr_id, void* buffer, uint32_t bytes, const ibv_mr* region);
  void Post(ibv_send_wr& first);
  int Poll(ibv_wc* completions, int most) { return ibv_poll_cq(cq_, most, completions); }
  // Returns true after a call on the connection failed: it is to be closed.
  bool failed() const { return failed_; }

 private:
  rdma_cm_id* id_;
  ibv_pd* pd_;
  ibv_cq* cq_;
  std::vector<ibv_mr*> regions_;
  bool failed_ = false;
};

// Work request of one piece of memory.
struct OneSge {
  ibv_sge sge{};
  ibv_send_wr wr{};
  OneSge(ibv_wr_opcode opcode, uint64_t wr_id, void* memory, uint32_t bytes, const ibv_mr* region);
  OneSge(const OneSge&) = delete;
  OneSge& operator=(const OneSge&) = delete;
};

rdma_conn_param ConnectionParameters();

}  // namespace rocegw::storage_io
