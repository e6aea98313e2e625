// SPDX-License-Identifier: Apache-2.0
// A program's device with queue pairs that are connected to those of a server on another host,
// which does what it is told over TCP and nothing else. It sleeps until something completes, so
// that what is measured is the gateway and not who polls. Errors end the program: it is one of a
// benchmark.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace rocegw::bench {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Fail(const char* what);
// Set when the program is to end.
bool Ended();

// Whom a program talks to, and as whom.
struct Server {
  const char* address;
  uint16_t port;
  int gid_index;
};

// A client's queue pairs, or the server's for one client.
class Talk {
 public:
  // So many queue pairs, each with room for so many requests; every byte of memory is touched.
  Talk(const Server& server, size_t queue_pairs, uint32_t depth, size_t bytes);
  // The other end, for the client at that socket: until it goes.
  static void Serve(int client, int gid_index);

  ibv_pd* pd() const { return pd_; }
  ibv_cq* cq() const { return cq_; }
  size_t size() const { return qps_.size(); }
  ibv_qp* qp(size_t at) const { return qps_[at]; }
  uint8_t* memory() const { return memory_; }
  const ibv_mr& mr() const { return *mr_; }

  // A request for the server's memory.
  ibv_send_wr Request(ibv_wr_opcode opcode, uint32_t length) const;
  void Post(size_t at, ibv_send_wr& request, const ibv_sge& sge) const;
  ibv_sge Piece(uint32_t length) const {
    return {reinterpret_cast<uint64_t>(memory_), length, mr_->lkey};
  }
  // Both ends from error back to where they can send.
  void Revive(size_t at) const;

  // Sleeps until something has completed, 0.1 s at most, and tells of each.
  void Wait(const std::function<void(const ibv_wc&)>& completed) const;

 private:
  // What both ends tell each other; the numbers of the queue pairs follow.
  struct Introduction {
    ibv_gid gid;
    uint64_t address;
    uint32_t rkey;
    uint32_t queue_pairs;
    uint32_t depth;
    uint64_t bytes;
  };

  Talk(int socket, int gid_index) : socket_(socket), gid_index_(gid_index) {}
  void Open(const Introduction& wanted);
  void Introduce();
  void Reconnect(size_t at) const;

  int socket_;
  int gid_index_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  uint8_t* memory_ = nullptr;
  ibv_mr* mr_ = nullptr;
  std::vector<ibv_qp*> qps_;
  Introduction me_{};
  Introduction peer_{};
  std::vector<uint32_t> peers_;  // numbers of its queue pairs
};

// What a program of that kind does until it is to end; false: there is no such kind.
bool MakeNoise(const char* kind, const Server& server);

}  // namespace rocegw::bench
