// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/record_heap.h"

#include <algorithm>
#include <limits>

#include "gateway/tenant/quota_node.h"
#include "gateway/worker/objects/worker_session.h"

namespace rocegw::worker {

using tenant::Resource;

void RecordHeap::Update(QpSlot& slot) { Count(slot, slot.qp->records_bytes()); }

void RecordHeap::Remove(QpSlot& slot) { Count(slot, 0); }

void RecordHeap::Count(QpSlot& slot, size_t records) {
  const auto now =
      static_cast<uint32_t>(std::min<size_t>(records, std::numeric_limits<uint32_t>::max()));
  if (now == slot.records) return;
  PoolAccounts& pool = *slot.session->account->of_pool;
  pool.records = pool.records - slot.records + now;
  slot.records = now;
  Charge(pool);
}

void RecordHeap::Charge(PoolAccounts& pool) {
  pool.records_refused = false;
  tenant::QuotaNode* const quota = pool.share == nullptr ? nullptr : pool.share->quota;
  if (quota == nullptr) return;
  const size_t beyond = pool.records > kFree ? pool.records - kFree : 0;
  const size_t steps = (beyond + kStep - 1) / kStep * kStep;
  if (steps > pool.records_charged) {
    const auto more = static_cast<uint64_t>(steps - pool.records_charged);
    pool.records_refused = quota->Take(Resource::kHeapBytes, more) != nullptr;
    if (!pool.records_refused) pool.records_charged = steps;
  } else if (steps + kStep < pool.records_charged || beyond == 0) {
    if (pool.records_charged != steps)
      quota->Give(Resource::kHeapBytes, pool.records_charged - steps);
    pool.records_charged = steps;
  }
}

}  // namespace rocegw::worker
