// SPDX-License-Identifier: Apache-2.0
// Path of a process to one donor of a shared block pool: an endpoint, or a queue pair. Commands of
// one path have no order among each other.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gateway/base/status.h"
#include "gateway/far/link/connection.h"
#include "gateway/far/pool/join_messages.h"
#include "gateway/far/pool/steps.h"

namespace rocegw::far {

constexpr int kMostPoolReads = 16;  // READs and atomics in flight on a queue pair

// Objects and limits that the paths of a pool share.
struct PathResources {
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  uint32_t depth = 0;  // commands under way
  uint32_t timeout_ms = 0;
};

class DonorPath {
 public:
  virtual ~DonorPath() = default;
  DonorPath(const DonorPath&) = delete;
  DonorPath& operator=(const DonorPath&) = delete;

  // Posts a command; its completion has this identifier. Returns 0 or an errno; ENOMEM: there is no
  // room until another command has completed. One thread at a time.
  virtual int Post(const Command& command, uint64_t id) = 0;
  // Stops: all commands complete, with an error.
  virtual void Abort() = 0;
  virtual bool is_endpoint() const = 0;
  const PoolGrant& grant() const { return grant_; }
  // Key of the memory that commands name, before the first one.
  void SetLocalKey(uint32_t key) { local_key_ = key; }

 protected:
  explicit DonorPath(const PoolGrant& grant) : grant_(grant) {}
  // Translates the command; `segment` has to live as long as the request.
  ibv_send_wr RequestOf(const Command& command, uint64_t id, ibv_sge* segment) const;

 private:
  const PoolGrant grant_;
  uint32_t local_key_ = 0;
};

// A joined donor.
struct Joined {
  std::unique_ptr<DonorPath> path;
  uint64_t identity = 0;  // hash of its address, the same in every process
};

// Paths that a pool may use.
enum class PathChoice : uint8_t { kAny, kEndpoints, kQueuePairs };

// Whether the device has endpoints.
bool HasEndpoints(ibv_context* context);

// Joins the pool at a donor. `resolved` has found the donor. By endpoints where both devices have
// them and the donor is behind another gateway, otherwise by a queue pair. EACCES: the donor has
// another secret.
StatusOr<Joined> JoinPool(std::unique_ptr<Connection> resolved, const std::string& host,
                          const std::string& port, const PathResources& resources,
                          const PoolSecret& secret, PathChoice choice, Clock::time_point deadline);

}  // namespace rocegw::far
