// SPDX-License-Identifier: Apache-2.0
// Worker that serves two pools of two tenants of equal weight, and a peer that answers at once.
// Time is the CPU time of the worker's iterations, so that peer, benchmark and other programs of
// the machine do not count. Single-threaded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gateway/tenant/share.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {

// Sides of the measured worker and of its peer.
inline constexpr int kHere = 0;
inline constexpr int kPeer = 1;
inline constexpr uint32_t kVictimSession = 1;
inline constexpr uint32_t kNoiseSession = 2;

// Connected pair of queue pairs of one session.
struct Pair {
  RingEnd* here = nullptr;
  RingEnd* peer = nullptr;
};

class Lab {
 public:
  // `slowdown`: factor for the time of each iteration, as if the worker had only that part of a
  // core. `channels`: the queue pairs share channels.
  Lab(double slowdown, bool channels);

  GatewayPair& gateways() { return *gateways_; }
  Pair Connect(uint32_t session, uint32_t sq_entries, uint8_t min_rnr_timer = 1);
  // Returns the worker's time in nanoseconds.
  int64_t time() const { return static_cast<int64_t>(time_); }
  // Runs one iteration of the worker, then the peer until it has no work.
  void Iterate();

  // Posts and rings the doorbell. Returns false if the queue is full.
  static rocegw_send_wqe Request(uint64_t wr_id, uint8_t opcode);
  // `offset`: place of the bytes in both sides' memory.
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
  uint32_t next_[3] = {};  // next handle, by session
  uint32_t next_qpn_ = 100;
};

// Well-behaved tenant: four queue pairs, each always with eight WRITEs of 4 KiB in flight.
class Victim {
 public:
  static constexpr uint32_t kQueues = 4;
  static constexpr uint32_t kDepth = 8;
  static constexpr uint32_t kBytes = 4096;

  explicit Victim(Lab& lab);
  // Takes completions and posts the next requests.
  void Turn();
  void Forget();

  uint64_t completed() const { return completed_; }
  // Time of each operation from post to completion, in nanoseconds of the worker's time.
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

// Badly behaved tenant.
class Noise {
 public:
  virtual ~Noise() = default;
  // Called before each iteration; fills the rings.
  virtual void Stage() = 0;
};
struct NoiseKind {
  const char* name;
  const char* what;
  bool gated;
  std::unique_ptr<Noise> (*make)(Lab& lab);
  bool channels = false;  // of the victim as well
};
// No noise: measures the fair share.
extern const NoiseKind kTwin;
extern const std::vector<NoiseKind> kNoises;

}  // namespace rocegw::testing
