// SPDX-License-Identifier: Apache-2.0
// One worker that serves two pools of two tenants of equal weight, and a peer that answers at once.
// Time is the worker's own: the CPU time that its iterations took, so that neither the peer nor the
// benchmark nor anybody else on the machine is in the figures. Single thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gateway/tenant/share.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {

// Side of the worker that is looked at, and of its peer.
inline constexpr int kHere = 0;
inline constexpr int kPeer = 1;
inline constexpr uint32_t kVictimSession = 1;
inline constexpr uint32_t kNoiseSession = 2;

// A connected pair of queue pairs of one session.
struct Pair {
  RingEnd* here = nullptr;
  RingEnd* peer = nullptr;
};

class Lab {
 public:
  // slowdown: every iteration of the worker takes so many times as long, as if somebody else had
  // the rest of it.
  explicit Lab(double slowdown);

  GatewayPair& gateways() { return *gateways_; }
  Pair Connect(uint32_t session, uint32_t sq_entries, uint8_t min_rnr_timer = 1);
  // Worker-loop time, nanoseconds.
  int64_t time() const { return static_cast<int64_t>(time_); }
  // One iteration of the worker, then the peer until it has nothing to do.
  void Iterate();

  // Posts and rings. False: the queue is full.
  static rocegw_send_wqe Request(uint64_t wr_id, uint8_t opcode);
  // offset: of the bytes in both sides' memory.
  bool Post(int side, RingEnd& end, const rocegw_send_wqe& wqe, uint32_t length,
            uint64_t offset = 0);

 private:
  tenant::Share root_{nullptr};
  tenant::Share tenants_[2] = {tenant::Share{&root_}, tenant::Share{&root_}};
  tenant::Share pools_[2] = {tenant::Share{&tenants_[0]}, tenant::Share{&tenants_[1]}};
  std::unique_ptr<GatewayPair> gateways_;
  double slowdown_;
  double time_ = 0;
  TimePoint start_;
  uint32_t next_[3] = {};  // handle, by session
  uint32_t next_qpn_ = 100;
};

// A tenant that behaves: four queue pairs with eight WRITEs of 4 KiB each under way, always.
class Victim {
 public:
  static constexpr uint32_t kQueues = 4;
  static constexpr uint32_t kDepth = 8;
  static constexpr uint32_t kBytes = 4096;

  explicit Victim(Lab& lab);
  // Takes completions, posts what follows them.
  void Turn();
  void Forget();

  uint64_t completed() const { return completed_; }
  // Of an operation, from its post to its completion; nanoseconds of worker-loop time.
  double LatencyAt(double quantile);

 private:
  struct Queue {
    Pair pair;
    uint64_t posted = 0;
    uint64_t done = 0;
    int64_t posted_at[kDepth] = {};
  };
  Lab& lab_;
  std::vector<Queue> queues_;
  std::vector<int64_t> latencies_;
  uint64_t completed_ = 0;
};

// A tenant that does not.
class Noise {
 public:
  virtual ~Noise() = default;
  // Before each iteration: its rings are full again.
  virtual void Stage() = 0;
};
struct NoiseKind {
  const char* name;
  const char* what;
  bool gated;
  std::unique_ptr<Noise> (*make)(Lab& lab);
};
// No noise: what a fair share is.
extern const NoiseKind kTwin;
extern const std::vector<NoiseKind> kNoises;

}  // namespace rocegw::testing
