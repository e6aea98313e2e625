// SPDX-License-Identifier: Apache-2.0
// Another replica of the group: a session that is kept, and the keys that the other replica may
// lack. Any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "examples/kv_store/session.h"
#include "examples/kv_store/store.h"

namespace kv {

class Peer {
 public:
  // `store` outlives the peer.
  Peer(Place place, bool fallback, Store& store)
      : place_(std::move(place)), fallback_(fallback), store_(store) {}
  // A process that ends does not join its threads: a peer lives as long as the process.
  void Start() { std::thread(&Peer::Keep, this).detach(); }

  // Returns false at once if the peer is not connected.
  bool Ask(const Message& request, Message& reply);
  // Sends a value. A key whose value did not arrive is sent again later.
  bool Write(const std::string& key, const Value& value);

  struct State {
    std::string transport;  // tcp, rdma, or down
    bool fell_back = false;
    size_t owed = 0;
  };
  State state() const;
  const std::string& name() const { return place_.name; }

 private:
  void Keep();
  // Makes a session in the place of one that is gone or that the replica left.
  void Renew();
  void SendOwed();

  const Place place_;
  const bool fallback_;
  Store& store_;

  mutable std::mutex mutex_;  // of the session: a request holds it until its reply
  std::unique_ptr<Session> session_;
  Clock::time_point connected_at_;

  mutable std::mutex state_mutex_;
  std::condition_variable wanted_;
  bool renew_ = false;
  uint64_t incarnation_ = 0;  // of the process at the other end
  State state_{.transport = "down"};
  std::set<std::string> owed_;
};

}  // namespace kv
