// SPDX-License-Identifier: Apache-2.0
// Free list of nodes for a std::map, std::set or similar container, so that inserting allocates
// nothing. Erased nodes return to the list; Refill allocates missing ones. The list never exceeds
// the wanted number. Belongs to the container's owner; not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace rocegw {

template <typename Container>
class KeptNodes {
 public:
  using Node = typename Container::node_type;
  using Iterator = typename Container::iterator;
  using Key = typename Container::key_type;

  // Sets the wanted number. A lower one frees nodes at once; for a higher one, Refill makes them.
  void SetWanted(size_t wanted) {
    wanted_ = wanted;
    if (kept_.size() > wanted_) kept_.resize(wanted_);
    kept_.reserve(wanted_);
  }
  // Makes at most `most` nodes and reserves space for all in the container. Returns false if
  // nothing was missing.
  bool Refill(Container& container, size_t most) {
    if constexpr (requires { container.bucket_count(); }) {
      const size_t needed = container.size() + wanted_;
      const float room = container.max_load_factor() * static_cast<float>(container.bucket_count());
      if (static_cast<float>(needed) > room) container.reserve(2 * needed);
    }
    const size_t missing = std::min(wanted_ - kept_.size(), most);
    for (size_t i = 0; i < missing; ++i) {
      Container made;
      made.emplace();
      kept_.push_back(made.extract(made.begin()));
    }
    return missing != 0;
  }

  // Inserts into a map. The key must not exist, unless it is a multimap.
  template <typename Mapped>
  Iterator Insert(Container& container, const Key& key, Mapped&& mapped) {
    if (kept_.empty()) return Inserted(container.emplace(key, std::forward<Mapped>(mapped)));
    Node node = Take();
    node.key() = key;
    node.mapped() = std::forward<Mapped>(mapped);
    return Inserted(container.insert(std::move(node)));
  }
  // Inserts into a set.
  Iterator Insert(Container& container, const Key& key) {
    if (kept_.empty()) return Inserted(container.insert(key));
    Node node = Take();
    node.value() = key;
    return Inserted(container.insert(std::move(node)));
  }

  void Erase(Container& container, Iterator at) {
    Node node = container.extract(at);
    if (kept_.size() >= wanted_) return;
    // Destroys the mapped value now.
    if constexpr (requires { node.mapped(); }) {
      if constexpr (!std::is_trivially_destructible_v<typename Container::mapped_type>)
        node.mapped() = {};
    }
    kept_.push_back(std::move(node));
  }

  size_t count() const { return kept_.size(); }

 private:
  template <typename Result>
  static Iterator Inserted(Result&& result) {
    if constexpr (requires { result.position; }) {
      return result.position;
    } else if constexpr (requires { result.first; }) {
      return result.first;
    } else {
      return result;
    }
  }
  Node Take() {
    Node node = std::move(kept_.back());
    kept_.pop_back();
    return node;
  }

  std::vector<Node> kept_;
  size_t wanted_ = 0;
};

}  // namespace rocegw
