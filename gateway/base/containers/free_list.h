// SPDX-License-Identifier: Apache-2.0
// Free list of blocks of one type. Returned blocks are kept for reuse: as many as are in use, or a
// few. Belongs to its owner; not thread-safe. All blocks must be returned before destruction. Sizes
// are bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace rocegw {

template <typename Block>
class FreeList {
 public:
  FreeList() = default;
  FreeList(const FreeList&) = delete;
  FreeList& operator=(const FreeList&) = delete;
  ~FreeList() {
    while (free_ != nullptr) delete TakeFree();
  }

  template <typename... Args>
  Block* Take(Args&&... args) {
    Node* const node = free_ != nullptr ? TakeFree() : new Node;
    ++used_;
    // Default-initialised, so that large blocks are not zeroed.
    if constexpr (sizeof...(Args) == 0) {
      return new (&node->block) Block;
    } else {
      return new (&node->block) Block(std::forward<Args>(args)...);
    }
  }
  void GiveBack(Block* block) {
    --used_;
    block->~Block();
    // The block is a member of the union, so it has the node's address.
    Node* const node = reinterpret_cast<Node*>(block);
    node->next = free_;
    free_ = node;
    ++free_count_;
    while (free_count_ > std::max(used_, kKeepAtLeast)) delete TakeFree();
  }

  size_t bytes_used() const { return used_ * sizeof(Block); }
  size_t bytes_kept() const { return free_count_ * sizeof(Block); }

 private:
  // Number of free blocks kept in any case, so that repeated use of a few blocks does not allocate.
  static constexpr size_t kKeepAtLeast = 16;

  union Node {
    Node() : next(nullptr) {}
    ~Node() {}
    Node* next;
    Block block;
  };
  Node* TakeFree() {
    --free_count_;
    return std::exchange(free_, free_->next);
  }

  Node* free_ = nullptr;
  size_t free_count_ = 0;
  size_t used_ = 0;
};

}  // namespace rocegw
