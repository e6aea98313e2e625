// SPDX-License-Identifier: Apache-2.0
// Reserve of a pool (spec.ready_qps), so that setting up a queue pair or connection allocates
// nothing and waits for no worker: RC queue pairs that are linked to their workers but have no
// session, chunks of shared memory, zero-filled and sealed, and ids of the connection manager. A
// chunk is given to one process as a whole. The reserve is refilled in small steps, some time after
// a use. Its shared memory and its heap are charged to its pool until a program takes them, which
// is charged itself. The connection manager keeps its own memory for all pools together, for as
// many ids as the reserves hold (CmEngine::Keep). Owner: the session server, and sessions that take
// from it; control thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/session/objects/objects.h"
#include "gateway/session/reserve/refill_timer.h"
#include "gateway/shm/segment.h"
#include "gateway/tenant/heap_cost.h"
#include "gateway/tenant/registry.h"
#include "gateway/transport/queues/send_queue.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::session {

class CmBinding;
struct Services;

class ReadyReserve final : public shm::ChunkSource,
                           public std::enable_shared_from_this<ReadyReserve> {
 public:
  // Largest queue pair that a ready one can become; for larger requests a new one is created.
  static constexpr verbs::QpShape kShape = {256, 4, 16};
  // Heap of the worker for posted sends, which a queue pair of the reserve keeps for its lifetime.
  static constexpr uint64_t kHeapOfSends =
      transport::SendQueue::HeapBytes(kShape.sq_entries, kShape.max_sge);
  // Upper bounds of the heap that one queue pair and one id cost while the reserve holds them. An
  // id has no events yet; its bytes include those that the connection manager keeps for it.
  static constexpr uint64_t kHeapOfQp = tenant::HeapCostOf(tenant::Resource::kQps) + kHeapOfSends;
  static constexpr uint64_t kHeapOfCmId =
      tenant::HeapCostOf(tenant::Resource::kCmIds) - tenant::kEventsPerObject * tenant::kEventBytes;

  // All arguments outlive the reserve, or its Close.
  ReadyReserve(Services& services, RefillTimer& refill, tenant::Pool& pool)
      : services_(services), refill_(refill), pool_(&pool) {}
  ~ReadyReserve() override { GiveBack(); }

  void SetWanted(uint32_t wanted);
  // Empties the reserve for good; sessions may still ask and get nothing.
  void Close();

  // Returns a queue pair with its number, on its worker; nullptr: none. Allocates nothing. The
  // charge for the queue pair ends: the caller charges the program.
  std::unique_ptr<Qp> TakeQp();
  // Returns an unused queue pair to the reserve, after the program's charge has ended.
  void PutBack(std::unique_ptr<Qp> qp);
  // Returns an id of the connection manager; a new one if the reserve has none.
  std::unique_ptr<CmId> TakeCmId();
  void PutBack(std::unique_ptr<CmId> id);
  std::optional<shm::ReadyChunk> TakeChunk(shm::Writer writer, uint64_t bytes) override;

  // Does a bounded piece of the refill. Returns false if nothing was missing.
  bool Refill();
  // Returns true if the last refill could not fill the reserve, because of a limit of the pool or
  // the system's memory.
  bool is_short() const { return short_; }

  void CountHit() { ++hits_; }
  void CountMiss() { ++misses_; }
  // Adds what the pool's reserve counted in the gateway that this one replaces.
  void AddCounts(uint64_t hits, uint64_t misses) {
    hits_ += hits;
    misses_ += misses;
  }
  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }
  uint32_t wanted() const { return wanted_; }
  uint32_t ready() const { return static_cast<uint32_t>(qps_.size()); }
  uint32_t ready_cm_ids() const { return static_cast<uint32_t>(cm_ids_.size()); }
  // Bytes of shared memory, and of heap, that the pool is charged for.
  uint64_t bytes() const { return charged_; }
  uint64_t heap() const { return heap_; }

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
  // `charged`: the pool is charged for the queue pair until the worker has destroyed it.
  enum class Charged : uint8_t { kNo, kYes };
  void Unlink(Qpn qpn, WorkerIndex worker, Charged charged);
  // Charges the pool. Returns false if the pool may not have so much.
  bool TakeHeap(uint64_t bytes);
  void GiveHeap(uint64_t bytes);
  void GiveBack();

  Services& services_;
  RefillTimer& refill_;
  tenant::Pool* pool_;  // nullptr: closed
  uint32_t wanted_ = 0;
  GrowingRing<std::unique_ptr<Qp>> qps_;
  uint32_t preparing_ = 0;
  std::vector<std::unique_ptr<CmId>> cm_ids_;
  std::array<Chunks, 2> chunks_;
  uint64_t charged_ = 0;
  uint64_t heap_ = 0;     // for queue pairs that are ready, being made or being destroyed, and ids
  bool refused_ = false;  // a limit or the system refused memory in this step of the refill
  bool short_ = false;
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
};

// Reserves of all pools that have one.
class ReadyReserves {
 public:
  // All arguments outlive the reserves.
  ReadyReserves(Services& services, RefillTimer& refill, CmBinding& cm)
      : services_(services), refill_(refill), cm_(cm) {}

  // Follows the pool's current settings.
  void Set(tenant::Pool& pool);
  // Closes the reserve of a pool that is removed or replaced.
  void Close(const tenant::Pool& pool);
  // Returns nullptr if the pool keeps no reserve.
  std::shared_ptr<ReadyReserve> Of(const tenant::Pool& pool) const;
  // Returns true if a refill step is scheduled.
  bool refill_due() const { return refill_.armed(); }

 private:
  // Does one step of the refill, and schedules the next one.
  void Refill();
  // Passes the number of ids that the pools are charged for to the connection manager.
  void KeepConnections();

  Services& services_;
  RefillTimer& refill_;
  CmBinding& cm_;
  std::unordered_map<uint64_t, std::shared_ptr<ReadyReserve>> by_pool_;
};

}  // namespace rocegw::session
