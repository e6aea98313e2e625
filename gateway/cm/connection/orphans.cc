// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/connection/orphans.h"

namespace rocegw::cm {
namespace {

// Moves a key of an order by count to its new count; 0: the key is in no order.
template <typename Key>
void Recount(std::set<std::pair<size_t, Key>>& order, const Key& key, size_t& count, size_t next) {
  if (count == 0) {
    order.insert({next, key});
  } else {
    auto node = order.extract({count, key});
    node.value().first = next;
    if (next != 0) order.insert(std::move(node));
  }
  count = next;
}

}  // namespace

void Orphans::Add(Connection& connection, uint64_t pool) {
  const wire::Gid& gid = connection.path.destination;
  Pool& of_pool = pools_[pool];
  Peer& peer = of_pool.peers[gid];
  connection.orphan = {this, pool, peer.newest, nullptr};
  (peer.newest == nullptr ? peer.oldest : peer.newest->orphan.next) = &connection;
  peer.newest = &connection;
  Recount(of_pool.by_count, gid, peer.count, peer.count + 1);
  Recount(by_count_, pool, of_pool.count, of_pool.count + 1);
  ++size_;
}

void Orphans::Remove(Connection& connection) {
  const wire::Gid& gid = connection.path.destination;
  const OrphanPlace place = connection.orphan;
  const auto pool = pools_.find(place.pool);
  Pool& of_pool = pool->second;
  const auto at = of_pool.peers.find(gid);
  Peer& peer = at->second;
  (place.previous == nullptr ? peer.oldest : place.previous->orphan.next) = place.next;
  (place.next == nullptr ? peer.newest : place.next->orphan.previous) = place.previous;
  connection.orphan = {};
  Recount(of_pool.by_count, gid, peer.count, peer.count - 1);
  Recount(by_count_, place.pool, of_pool.count, of_pool.count - 1);
  if (peer.count == 0) of_pool.peers.erase(at);
  if (of_pool.count == 0) pools_.erase(pool);
  --size_;
}

Connection* Orphans::Excess() const {
  if (size_ <= most_) return nullptr;
  const Pool& greediest = pools_.at(by_count_.rbegin()->second);
  return greediest.peers.at(greediest.by_count.rbegin()->second).oldest;
}

}  // namespace rocegw::cm
