// SPDX-License-Identifier: Apache-2.0
// Donor of a shared block pool: gives processes that prove the pool's secret access to one table of
// blocks (pool/table.h), by an endpoint or by a queue pair each, and takes no part in what they do
// there. Its owner may allow it less memory, or none: the donor then takes the table away from its
// members after a while, and forgets the values. One thread runs it; Stop, Allow, counts and
// IsRunning are for any thread.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/far/link/connection.h"
#include "gateway/far/link/listener.h"
#include "gateway/far/pool/join_messages.h"

namespace rocegw::far {

struct BlockDonorCounts {
  uint64_t donated_bytes = 0;
  uint64_t blocks = 0;
  uint64_t values = 0;
  uint64_t open_bytes = 0;       // memory of the table; 0: the donor is closed
  bool closing = false;          // the table is taken away soon
  uint64_t connections = 0;      // queue pairs, now
  uint64_t joined_endpoint = 0;  // joins, as the following
  uint64_t joined_queue_pair = 0;
  uint64_t refused_secret = 0;
  uint64_t refused_limit = 0;
  uint64_t refused_closed = 0;
  uint64_t refused_other = 0;
};

class BlockDonor {
 public:
  struct Settings {
    uint64_t bytes = 0;  // most memory that the table takes
    uint64_t block_bytes = 0;
    std::vector<uint8_t> secret;
  };

  explicit BlockDonor(const Settings& settings);
  ~BlockDonor();
  BlockDonor(const BlockDonor&) = delete;
  BlockDonor& operator=(const BlockDonor&) = delete;

  // Listens at the address. `host` empty: all addresses of RDMA devices. EINVAL: the memory has no
  // room for a bucket of 16 blocks.
  Status Listen(const std::string& host, const std::string& port);
  // Returns the address and the port of the listener as numbers; an empty address: all.
  std::string address() const { return listener_.address(); }
  uint16_t port() const { return listener_.port(); }
  // Serves until Stop, or until the gateway or device that it listens at is gone (ENODEV).
  Status Run();
  // Whether Run has begun a round within the last half minute.
  bool IsRunning() const;
  void Stop();
  BlockDonorCounts counts() const;
  // Allows the table so much memory; 0: none. Before the first call: all of the settings. A table
  // that is larger than allowed is closed kLeave later, or at once if no process has joined it. A
  // smaller one stays as it is.
  void Allow(uint64_t bytes);
  // Longer than members take to learn that they should leave.
  static constexpr auto kLeave = std::chrono::seconds(15);

 private:
  struct Device;
  struct Session {
    std::unique_ptr<Connection> connection;
    std::string host;
    Clock::time_point since;
    bool established = false;
  };

  Status MapMemory();
  void FollowAllowance();
  void Open(const TableShape& shape);
  void Close();
  StatusOr<Device*> DeviceOf(ibv_context* context);
  void OnEvents();
  void OnRequest(rdma_cm_id* id, std::span<const uint8_t> said);
  void OnJoin(std::unique_ptr<Connection> connection, std::span<const uint8_t> said,
              const std::string& host);
  void Refuse(rdma_cm_id* id, int error);
  Status Accept(Connection& connection, const Device& device, const GrantBytes& said);
  bool HasRoomFor(const std::string& host) const;
  void EndSilent();
  void Count(uint64_t BlockDonorCounts::*member);

  const Settings settings_;
  const PoolSecret secret_;
  TableShape shape_;  // changed by the thread of Run, with the lock; no buckets: closed
  const Challenger challenger_;
  uint8_t* memory_ = nullptr;
  UniqueFd stop_fd_;
  Listener listener_;
  std::map<ibv_context*, std::unique_ptr<Device>> devices_;
  std::map<uint64_t, Session> sessions_;
  uint64_t last_session_ = 0;
  bool listener_gone_ = false;
  bool joined_ = false;  // a process has joined since the table was opened
  std::optional<Clock::time_point> closing_since_;
  std::atomic<uint64_t> allowed_bytes_;
  std::atomic<int64_t> last_round_{0};
  mutable std::mutex mutex_;  // guards the counts, and the shape for other threads
  BlockDonorCounts counts_;
};

}  // namespace rocegw::far
