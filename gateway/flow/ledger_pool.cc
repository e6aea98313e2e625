// SPDX-License-Identifier: Apache-2.0
#include "gateway/flow/ledger_pool.h"

#include <algorithm>
#include <new>

#include "gateway/base/invariant.h"

namespace rocegw::flow {
namespace {
// Blocks that are kept whatever is used, so that a flow that comes and goes does not allocate.
constexpr size_t kKeepAtLeast = 16;
}  // namespace

template <typename Block>
Block* LedgerPool::Shelf<Block>::Take() {
  Node* node = free;
  if (node != nullptr) {
    free = node->next;
    --free_count;
  } else {
    node = new Node;
  }
  ++used;
  return new (&node->block) Block;
}

template <typename Block>
void LedgerPool::Shelf<Block>::GiveBack(Block* block) {
  --used;
  // The block is the union's only other member, so it lies where its node does.
  Node* node = reinterpret_cast<Node*>(block);
  node->next = free;
  free = node;
  ++free_count;
  while (free_count > std::max(used, kKeepAtLeast)) {
    node = free;
    free = node->next;
    --free_count;
    delete node;
  }
}

template <typename Block>
void LedgerPool::Shelf<Block>::Clear() {
  while (free != nullptr) {
    Node* node = free;
    free = node->next;
    delete node;
  }
  free_count = 0;
}

LedgerPool::~LedgerPool() {
  (void)ROCEGW_INVARIANT(bytes_used() == 0, "ledger-pool-in-use");
  chunks_.Clear();
  pages_.Clear();
}

RecordChunk* LedgerPool::TakeChunk() { return chunks_.Take(); }
void LedgerPool::GiveBack(RecordChunk* chunk) { chunks_.GiveBack(chunk); }

LedgerPage* LedgerPool::TakePage() {
  LedgerPage* page = pages_.Take();
  page->arrived.fill(0);
  return page;
}
void LedgerPool::GiveBack(LedgerPage* page) { pages_.GiveBack(page); }

size_t LedgerPool::bytes_used() const {
  return chunks_.used * sizeof(RecordChunk) + pages_.used * sizeof(LedgerPage);
}

size_t LedgerPool::bytes_held() const {
  return bytes_used() + chunks_.free_count * sizeof(RecordChunk) +
         pages_.free_count * sizeof(LedgerPage);
}

}  // namespace rocegw::flow
