// SPDX-License-Identifier: Apache-2.0
// Connection: the queue pairs of one case, connected to the peer's through rdma_cm or by exchanging
// numbers over the control connection, with one send and one receive CQ for all of them and one
// memory region over the arena. Queue pair i of one side is connected to queue pair i of the other.
// Destruction releases everything, connected or not.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/interop/rdma_check/arena.h"
#include "tests/interop/rdma_check/device.h"
#include "tests/interop/rdma_check/session.h"

namespace rocegw::interop {

inline constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

// Headers before rdma-core 46 lack them: IBV_QP_EX_WITH_FLUSH, IBV_ACCESS_FLUSH_GLOBAL.
inline constexpr uint64_t kWithFlush = 1 << 11;
inline constexpr unsigned kFlushGlobal = 1 << 8;

struct ConnectionOptions {
  uint32_t qps = 1;
  uint32_t depth = 64;  // of send and receive queue
  uint32_t sges = 4;
  uint32_t inline_bytes = 0;
  bool signal_all = false;
  bool force_events = false;  // completion channels whatever the settings say
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;
  uint8_t read_depth = 8;    // READs and atomics in flight
  uint64_t send_ops = 0;     // enum ibv_qp_create_send_ops_flags; 0: made without ibv_wr_* calls
  unsigned more_access = 0;  // of the region, beside kAllAccess
};

class CmChannel;

class Connection {
 public:
  Connection(Session& session, const ConnectionOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  ibv_qp* qp(uint32_t i) { return qps_[i]; }
  uint32_t qps() const { return static_cast<uint32_t>(qps_.size()); }
  // Index of the queue pair with a number; throws when none of ours has it.
  uint32_t IndexOf(uint32_t qp_num) const;
  Completions& send() { return *send_; }
  Completions& receive() { return *receive_; }
  Arena& arena() { return arena_; }
  ibv_pd* pd() { return pd_; }
  ibv_mr* mr() { return mr_.get(); }
  const ConnectionOptions& options() const { return options_; }
  // Whether a side is Linux soft-RoCE, whose statuses for some local faults are not those of the
  // specification.
  bool local_is_rxe() const { return local_is_rxe_; }
  bool remote_is_rxe() const { return remote_is_rxe_; }
  uint32_t path_mtu() const { return path_mtu_; }
  uint32_t inline_bytes() const { return inline_bytes_; }

  // The peer's memory region.
  uint64_t remote_address(uint32_t offset) const { return remote_base_ + offset; }
  uint32_t rkey() const { return rkey_; }

  // Orderly end: the case's last step, on both sides. With rdma_cm both see the disconnect.
  void Close(Session& session, bool client_disconnects = true);

  // Whether the peer has ended an rdma_cm connection; takes that event.
  bool DisconnectSeen();

  // Takes queue pair i away while the peer still uses it.
  void Destroy(uint32_t i);
  ibv_qp_state State(uint32_t i);

 private:
  // Separate from connecting, so that a failure there still runs the destructor.
  Connection(const ConnectionOptions& options, uint64_t arena_seed, bool use_events);
  ibv_qp_init_attr InitAttributes();
  ibv_qp_init_attr_ex InitWithCalls();
  void CreateCommon(ibv_context* context);
  void ConnectByCm(Session& session);
  void ConnectBySocket(Session& session);
  void ExchangeMemory(Session& session);

  ConnectionOptions options_;
  Arena arena_;
  Owned<ibv_context> context_;          // socket exchange only
  std::unique_ptr<CmChannel> channel_;  // rdma_cm only
  std::vector<rdma_cm_id*> ids_;        // rdma_cm only
  Owned<ibv_pd> own_pd_;
  ibv_pd* pd_ = nullptr;
  Owned<ibv_mr> mr_;
  std::unique_ptr<Completions> send_;
  std::unique_ptr<Completions> receive_;
  std::vector<ibv_qp*> qps_;
  std::vector<uint32_t> numbers_;
  bool use_events_;
  bool local_is_rxe_ = false;
  bool remote_is_rxe_ = false;
  uint32_t path_mtu_ = 0;
  uint32_t inline_bytes_ = 0;
  uint64_t remote_base_ = 0;
  uint32_t rkey_ = 0;
};

// Attribute changes of a queue pair up to RTS, for socket exchange.
struct PeerQp {
  uint32_t number;
  uint32_t psn;
  ibv_gid gid;
};
void ToInit(ibv_qp* qp, unsigned more_access = 0);
void ToReadyToReceive(ibv_qp* qp, const PeerQp& peer, uint8_t gid_index, uint32_t mtu,
                      uint8_t read_depth);
void ToReadyToSend(ibv_qp* qp, uint32_t psn, const ConnectionOptions& options);
void ToError(ibv_qp* qp);

}  // namespace rocegw::interop
