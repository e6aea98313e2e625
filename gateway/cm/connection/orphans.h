// SPDX-License-Identifier: Apache-2.0
// Bounded list of orphans: connections without an id that are kept for their peer's sake. Refusing
// or ending a connection costs a program nothing, so a program and a peer that it accepts can make
// orphans as fast as they send requests. Pools share the list fairly, and in each pool its peers:
// beyond the bound, the oldest orphan of the peer with the most orphans makes room, in the pool
// with the most. Intrusive: the connections are the list's nodes. Control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "gateway/cm/connection/connection.h"

namespace rocegw::cm {

class Orphans {
 public:
  explicit Orphans(size_t most) : most_(most) {}
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;

  // Adds a connection that is in no list of orphans. `pool`: the pool of its program.
  void Add(Connection& connection, uint64_t pool);
  void Remove(Connection& connection);

  // Returns the connection that makes room; nullptr: the list is within its bound.
  Connection* Excess() const;
  size_t size() const { return size_; }

 private:
  struct Peer {
    Connection* oldest = nullptr;
    Connection* newest = nullptr;
    size_t count = 0;
  };
  struct Pool {
    std::map<wire::Gid, Peer> peers;
    std::set<std::pair<size_t, wire::Gid>> by_count;
    size_t count = 0;
  };

  const size_t most_;
  size_t size_ = 0;
  std::map<uint64_t, Pool> pools_;
  std::set<std::pair<size_t, uint64_t>> by_count_;
};

}  // namespace rocegw::cm
