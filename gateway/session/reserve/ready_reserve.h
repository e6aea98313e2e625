// SPDX-License-Identifier: Apache-2.0
// What a pool keeps ready (spec.ready_qps), so that setting up a queue pair or a connection
// allocates nothing and waits for no worker: RC queue pairs that are linked to their workers and
// nobody's, chunks of shared memory, zero-filled and sealed, ids of the connection manager. Chunks
// are given away whole, to one process. A reserve is filled up again in small steps, some time
// after something was taken. Its shared memory is charged to its pool. What the connection manager
// itself needs it keeps for all pools together (CmEngine::Keep). Owner: the services of the session
// layer, and sessions that take from it; control thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/base/unique_fd.h"
#include "gateway/session/control_loop.h"
#include "gateway/session/objects/objects.h"
#include "gateway/shm/segment.h"
#include "gateway/tenant/registry.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::session {

struct Services;

class ReadyReserve final : public shm::ChunkSource,
                           public std::enable_shared_from_this<ReadyReserve> {
 public:
  // What a ready queue pair can become: programs that want more get one that is made for them.
  static constexpr verbs::QpShape kShape = {256, 4, 16};

  // Both outlive the reserve, or its Close.
  ReadyReserve(Services& services, tenant::Pool& pool) : services_(services), pool_(&pool) {}
  ~ReadyReserve() override { GiveBack(); }

  void SetWanted(uint32_t wanted);
  // Nothing is kept any more; sessions may still ask, and get nothing.
  void Close();

  // With its number, on its worker; nullptr: there is none. Allocates nothing.
  std::unique_ptr<Qp> TakeQp();
  // It was not used.
  void PutBack(std::unique_ptr<Qp> qp);
  // Of the connection manager; a new one when there is none.
  std::unique_ptr<CmId> TakeCmId();
  void PutBack(std::unique_ptr<CmId> id);
  std::optional<shm::ReadyChunk> TakeChunk(shm::Writer writer, uint64_t bytes) override;

  // A bounded piece of work towards what is wanted. False: there was nothing to do.
  bool Refill();
  // It could not be filled: a limit of the pool, or the memory of the system.
  bool is_short() const { return short_; }

  void CountHit() { ++hits_; }
  void CountMiss() { ++misses_; }
  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }
  uint32_t wanted() const { return wanted_; }
  uint32_t ready() const { return static_cast<uint32_t>(qps_.size()); }
  uint64_t bytes() const { return charged_; }

 private:
  using Chunks = std::vector<shm::ReadyChunk>;

  size_t PairsWanted() const {
    return tenant::ReserveBytes(wanted_) / (2 * tenant::kReadyChunkBytes);
  }
  Chunks& Of(shm::Writer writer) { return chunks_[static_cast<size_t>(writer)]; }
  bool RefillChunks();
  bool RefillQps();
  bool RefillCmIds();
  void Prepare();
  void Unlink(Qpn qpn, WorkerIndex worker);
  void GiveBack();

  Services& services_;
  tenant::Pool* pool_;  // nullptr: closed
  uint32_t wanted_ = 0;
  GrowingRing<std::unique_ptr<Qp>> qps_;
  uint32_t preparing_ = 0;
  std::vector<std::unique_ptr<CmId>> cm_ids_;
  std::array<Chunks, 2> chunks_;
  uint64_t charged_ = 0;
  bool short_ = false;
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
};

// The reserves of all pools that have one, and when they are filled.
class ReadyReserves {
 public:
  explicit ReadyReserves(Services& services) : services_(services) {}
  ~ReadyReserves();

  // As the pool says now.
  void Set(tenant::Pool& pool);
  // The pool goes, or another comes in its place.
  void Close(const tenant::Pool& pool);
  // nullptr: the pool keeps nothing ready.
  std::shared_ptr<ReadyReserve> Of(const tenant::Pool& pool) const;
  // Something was taken: fill up when it has been quiet for a while. Allocates nothing.
  void RefillLater();
  // A turn of filling is to come, now or after `refill_after`.
  bool refill_due() const { return armed_; }

 private:
  void Arm(Duration after);
  void OnTimer();
  // The sum of what is wanted, for the connection manager.
  void KeepConnections();

  Services& services_;
  std::unordered_map<uint64_t, std::shared_ptr<ReadyReserve>> by_pool_;
  UniqueFd timer_;
  ControlLoop::WatchId watch_ = 0;
  bool armed_ = false;
};

}  // namespace rocegw::session
