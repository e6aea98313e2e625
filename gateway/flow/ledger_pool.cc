// SPDX-License-Identifier: Apache-2.0
#include "gateway/flow/ledger_pool.h"

#include "gateway/base/invariant.h"

namespace rocegw::flow {

LedgerPool::~LedgerPool() { (void)ROCEGW_INVARIANT(bytes_used() == 0, "ledger-pool-in-use"); }

RecordChunk* LedgerPool::TakeChunk() { return chunks_.Take(); }
void LedgerPool::GiveBack(RecordChunk* chunk) { chunks_.GiveBack(chunk); }

LedgerPage* LedgerPool::TakePage() {
  LedgerPage* page = pages_.Take();
  page->arrived.fill(0);
  page->pool = this;
  return page;
}
void LedgerPool::GiveBack(LedgerPage* page) { pages_.GiveBack(page); }

size_t LedgerPool::bytes_used() const { return chunks_.bytes_used() + pages_.bytes_used(); }

size_t LedgerPool::bytes_held() const {
  return bytes_used() + chunks_.bytes_kept() + pages_.bytes_kept();
}

}  // namespace rocegw::flow
