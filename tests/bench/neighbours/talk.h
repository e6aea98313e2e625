// SPDX-License-Identifier: Apache-2.0
// Device of a benchmark program with queue pairs that are connected to those of a server on another
// host. The server only follows commands over TCP. The program sleeps until a completion, so that
// the gateway and not polling is measured. Errors end the program.
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
// Set to end the program.
bool Ended();

// Address of the server and GID index of the client.
struct Server {
  const char* address;
  uint16_t port;
  int gid_index;
};

// Queue pairs of a client, or of the server for one client.
class Talk {
 public:
  // Makes queue pairs of that depth and `bytes` of memory, all of it touched.
  Talk(const Server& server, size_t queue_pairs, uint32_t depth, size_t bytes);
  // Serves the client at that socket until it disconnects.
  static void Serve(int client, int gid_index);

  ibv_pd* pd() const { return pd_; }
  ibv_cq* cq() const { return cq_; }
  size_t size() const { return qps_.size(); }
  ibv_qp* qp(size_t at) const { return qps_[at]; }
  uint8_t* memory() const { return memory_; }
  const ibv_mr& mr() const { return *mr_; }

  // Returns a request for the server's memory.
  ibv_send_wr Request(ibv_wr_opcode opcode, uint32_t length) const;
  void Post(size_t at, ibv_send_wr& request, const ibv_sge& sge) const;
  ibv_sge Piece(uint32_t length) const {
    return {reinterpret_cast<uint64_t>(memory_), length, mr_->lkey};
  }
  // Moves both ends from the error state to RTS.
  void Revive(size_t at) const;

  // Sleeps until a completion, at most 0.1 s, and reports each completion.
  void Wait(const std::function<void(const ibv_wc&)>& completed) const;

 private:
  // Message that both ends exchange; the queue pairs' numbers follow it.
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
  std::vector<uint32_t> peers_;  // numbers of the peer's queue pairs
};

// Runs a program of that kind until it is to end. Returns false if there is no such kind.
bool MakeNoise(const char* kind, const Server& server);

}  // namespace rocegw::bench
