// SPDX-License-Identifier: Apache-2.0
// One side of a verb script: carries out its lines and says, in words that are the same on every
// RDMA stack, what came of each. Of a completion only what its manual page defines is told: of one
// with an error the status, of a request's the length only where bytes came back. Owned by one
// thread; both sides' players are created, stepped and finished together.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/interop/rdma_check/control.h"
#include "tests/interop/rdma_check/device.h"
#include "tests/interop/verbs_script/script.h"

namespace rocegw::interop {

struct QpDeleter {
  void operator()(ibv_qp* qp) const { ibv_destroy_qp(qp); }
  void operator()(ibv_srq* srq) const { ibv_destroy_srq(srq); }
};

class Player {
 public:
  static constexpr uint32_t kMemory = 1 << 16;

  // context: of the device that has the control connection's local address.
  Player(Control& control, ibv_context* context, bool left);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  // The `qp` line, on both sides at the same time.
  std::string Connect(const ScriptLine& line);
  // A line of this side. Returns what came of it, lines that end with \n.
  std::string Play(const ScriptLine& line);
  // The peer's lines may name keys that this side must learn: called on both sides after each.
  void ShareKeys();
  // Flushes what is open and tells it, then what has become of the memory.
  std::string Finish();

 private:
  struct Peer {
    uint32_t qpn = 0;
    uint64_t base = 0;
    std::map<std::string, uint32_t> keys;
  };

  std::string PostReceive(const ScriptLine& line);
  std::string PostRequest(const ScriptLine& line);
  std::string Wait(bool sends, uint64_t count);
  std::string Describe(const ibv_wc& wc, bool send);
  void ForgetHeader(uint64_t receive);
  std::string AwaitChange(const Extent& piece) const;
  std::string RegisterRegion(const ScriptLine& line);
  std::string Move(const std::string& state);
  std::string State();
  std::string ChangedMemory() const;
  std::vector<ibv_sge> ListOf(const ScriptLine& line) const;
  int ToReadyToReceive(const ScriptLine& line, const ibv_gid& gid);
  int ToReadyToSend(const ScriptLine& line);

  Control& control_;
  ibv_context* context_;
  const bool left_;
  uint8_t* memory_;
  std::vector<uint8_t> first_;  // what was in it
  Owned<ibv_pd> pd_;
  std::map<std::string, Owned<ibv_mr>> regions_;
  std::map<std::string, uint32_t> keys_;  // of regions that are gone, too
  std::unique_ptr<Completions> sends_;
  std::unique_ptr<Completions> receives_;
  std::unique_ptr<ibv_srq, QpDeleter> srq_;
  std::unique_ptr<ibv_qp, QpDeleter> qp_;
  Owned<ibv_ah> handle_;
  Peer peer_;
  std::map<uint64_t, std::vector<Extent>> posted_;  // receives, by their ID
  bool signals_all_ = false;
  uint32_t open_sends_ = 0;  // of those that ask for a completion
  uint32_t open_receives_ = 0;
};

}  // namespace rocegw::interop
