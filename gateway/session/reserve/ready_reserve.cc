// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/reserve/ready_reserve.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/services.h"

namespace rocegw::session {
namespace {

constexpr uint64_t kChunk = tenant::kReadyChunkBytes;
static_assert(kChunk == shm::Segment::kFirstChunk);
constexpr uint32_t kQpsPerTurn = 16;
constexpr size_t kCmIdsPerTurn = 64;
// Pause between two refill steps, in which requests are served.
constexpr Duration kTurn = Microseconds(200);
// Pause after a reserve could not be filled.
constexpr Duration kShortRetry = Seconds(1);

}  // namespace

void ReadyReserve::SetWanted(uint32_t wanted) {
  wanted_ = wanted;
  if (cm_ids_.size() <= wanted) return;
  GiveHeap((cm_ids_.size() - wanted) * kHeapOfCmId);
  cm_ids_.resize(wanted);
}

bool ReadyReserve::TakeHeap(uint64_t bytes) {
  if (pool_ == nullptr || pool_->Left(Resource::kHeapBytes) < bytes ||
      pool_->Take(Resource::kHeapBytes, bytes)) {
    refused_ = true;
    return false;
  }
  heap_ += bytes;
  return true;
}

void ReadyReserve::GiveHeap(uint64_t bytes) {
  // A closed reserve has given everything back.
  if (pool_ == nullptr) return;
  heap_ -= bytes;
  pool_->Give(Resource::kHeapBytes, bytes);
}

void ReadyReserve::GiveBack() {
  if (pool_ != nullptr) pool_->Give(Resource::kSegmentBytes, charged_);
  charged_ = 0;
  GiveHeap(heap_);
  for (Chunks& chunks : chunks_) chunks.clear();
}

void ReadyReserve::Close() {
  SetWanted(0);
  while (RefillQps()) {
  }
  GiveBack();
  pool_ = nullptr;
}

std::unique_ptr<Qp> ReadyReserve::TakeQp() {
  if (wanted_ == 0 || qps_.empty()) return nullptr;
  std::unique_ptr<Qp> qp = std::move(qps_.front());
  qps_.pop_front();
  GiveHeap(kHeapOfQp);
  refill_.Later();
  return qp;
}

void ReadyReserve::PutBack(std::unique_ptr<Qp> qp) {
  const Qpn qpn = qp->qpn;
  const WorkerIndex worker = qp->worker;
  *qp = Qp();
  if (!TakeHeap(kHeapOfQp)) {
    refill_.Later();
    return Unlink(qpn, worker, Charged::kNo);
  }
  qp->qpn = qpn;
  qp->worker = worker;
  qps_.push_back(std::move(qp));
}

std::unique_ptr<CmId> ReadyReserve::TakeCmId() {
  if (cm_ids_.empty()) return std::make_unique<CmId>();
  std::unique_ptr<CmId> id = std::move(cm_ids_.back());
  cm_ids_.pop_back();
  GiveHeap(kHeapOfCmId);
  refill_.Later();
  return id;
}

void ReadyReserve::PutBack(std::unique_ptr<CmId> id) {
  if (cm_ids_.size() >= wanted_ || !TakeHeap(kHeapOfCmId)) return;
  *id = CmId();
  cm_ids_.push_back(std::move(id));
}

std::optional<shm::ReadyChunk> ReadyReserve::TakeChunk(shm::Writer writer, uint64_t bytes) {
  Chunks& chunks = Of(writer);
  if (wanted_ == 0 || chunks.empty() || bytes > kChunk) return std::nullopt;
  shm::ReadyChunk chunk = std::move(chunks.back());
  chunks.pop_back();
  // The session that takes the chunk pays for it.
  charged_ -= kChunk;
  refill_.Later();
  return chunk;
}

bool ReadyReserve::Refill() {
  refused_ = false;
  if (RefillChunks() || RefillQps() || RefillCmIds()) return true;
  short_ = refused_;
  if (short_) {
    services_.reports.Tell("RESERVE_SHORT", pool_->name(), "",
                           pool_->name() + ": no memory to keep " + std::to_string(wanted_) +
                               " queue pairs ready; what is made now takes longer");
  }
  return false;
}

bool ReadyReserve::RefillCmIds() {
  const size_t missing = std::min<size_t>(wanted_ - cm_ids_.size(), kCmIdsPerTurn);
  size_t made = 0;
  for (; made < missing && TakeHeap(kHeapOfCmId); ++made)
    cm_ids_.push_back(std::make_unique<CmId>());
  return made != 0;
}

bool ReadyReserve::RefillChunks() {
  for (const shm::Writer writer : {shm::Writer::kClient, shm::Writer::kDaemon}) {
    Chunks& chunks = Of(writer);
    if (chunks.size() > PairsWanted()) {
      chunks.pop_back();
      charged_ -= kChunk;
      pool_->Give(Resource::kSegmentBytes, kChunk);
      return true;
    }
    if (chunks.size() == PairsWanted()) continue;
    refused_ = true;
    if (pool_->Left(Resource::kSegmentBytes) < kChunk) continue;
    auto memory = shm::Chunk::Create(kChunk, writer, shm::Sealing::kForSuccessor);
    if (memory.ok() && (*memory)->Prefault().ok() &&
        !pool_->Take(Resource::kSegmentBytes, kChunk)) {
      charged_ += kChunk;
      chunks.push_back({std::move(*memory), {}});
      return true;
    }
  }
  return false;
}

bool ReadyReserve::RefillQps() {
  const size_t has = qps_.size() + preparing_;
  if (has < wanted_) {
    const size_t missing = wanted_ - has;
    const uint32_t before = preparing_;
    for (size_t i = 0; i < std::min<size_t>(missing, kQpsPerTurn); ++i) Prepare();
    return preparing_ != before;
  }
  if (has == wanted_ || qps_.empty()) return false;
  for (uint32_t i = 0; i < kQpsPerTurn && qps_.size() + preparing_ > wanted_ && !qps_.empty();
       ++i) {
    Unlink(qps_.front()->qpn, qps_.front()->worker, Charged::kYes);
    qps_.pop_front();
  }
  return true;
}

void ReadyReserve::Prepare() {
  if (!TakeHeap(kHeapOfQp)) return;
  auto taken = services_.choice.TakeQpn();
  if (!taken) return GiveHeap(kHeapOfQp);
  ++preparing_;
  qps_.Reserve(qps_.size() + preparing_);
  auto qp = std::make_shared<std::unique_ptr<Qp>>(std::make_unique<Qp>());
  (*qp)->qpn = taken->qpn;
  (*qp)->worker = taken->worker;
  services_.workers.Send(
      taken->worker, worker::PrepareQp{taken->qpn, kShape},
      [reserve = shared_from_this(), qp, taken = *taken](const worker::ControlReply& made) {
        --reserve->preparing_;
        if (made.error != 0) {
          reserve->services_.qpns.Give(taken.qpn, ControlLoop::Now());
          reserve->GiveHeap(kHeapOfQp);
        } else if (reserve->pool_ == nullptr) {
          reserve->Unlink(taken.qpn, taken.worker, Charged::kNo);
        } else {
          reserve->qps_.push_back(std::move(*qp));
        }
      });
}

void ReadyReserve::Unlink(Qpn qpn, WorkerIndex worker, Charged charged) {
  services_.workers.Send(worker, worker::UnlinkQp{SessionId{}, qpn},
                         [reserve = shared_from_this(), qpn, charged](const worker::ControlReply&) {
                           reserve->services_.qpns.Give(qpn, ControlLoop::Now());
                           if (charged == Charged::kYes) reserve->GiveHeap(kHeapOfQp);
                           reserve->services_.heap.Destroyed(1);
                         });
}

void ReadyReserves::Set(tenant::Pool& pool) {
  const uint32_t wanted = pool.settings().ready_qps;
  auto known = by_pool_.find(pool.id());
  if (known == by_pool_.end()) {
    if (wanted == 0) return;
    known =
        by_pool_.emplace(pool.id(), std::make_shared<ReadyReserve>(services_, refill_, pool)).first;
  }
  known->second->SetWanted(wanted);
  KeepConnections();
  refill_.Begin([this] { Refill(); });
  refill_.Arm(kTurn);
}

void ReadyReserves::Close(const tenant::Pool& pool) {
  const auto known = by_pool_.find(pool.id());
  if (known == by_pool_.end()) return;
  known->second->Close();
  by_pool_.erase(known);
  KeepConnections();
}

void ReadyReserves::KeepConnections() {
  size_t ids = 0;
  for (const auto& [id, reserve] : by_pool_) ids += reserve->ready_cm_ids();
  cm_.Keep(ids);
}

std::shared_ptr<ReadyReserve> ReadyReserves::Of(const tenant::Pool& pool) const {
  const auto known = by_pool_.find(pool.id());
  return known == by_pool_.end() ? nullptr : known->second;
}

void ReadyReserves::Refill() {
  bool is_short = false;
  for (const auto& [id, reserve] : by_pool_) {
    if (reserve->Refill()) return refill_.Arm(kTurn);
    is_short = is_short || reserve->is_short();
  }
  KeepConnections();
  if (cm_.Refill()) return refill_.Arm(kTurn);
  if (is_short) refill_.Arm(kShortRetry);
}

}  // namespace rocegw::session
