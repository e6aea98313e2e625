// SPDX-License-Identifier: Apache-2.0
// One replica: serves links of both transports, and coordinates gets and puts of its clients with
// the other replicas (ABD: a majority says which version is the newest, a majority stores the next
// one). It has no leader; a group of three goes on while two of them answer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "examples/kv_store/link.h"
#include "examples/kv_store/message.h"
#include "examples/kv_store/peer.h"
#include "examples/kv_store/settings.h"
#include "examples/kv_store/store.h"

namespace kv {

class Replica {
 public:
  // Links beyond this number are closed at once.
  static constexpr int kMostLinks = 128;

  explicit Replica(const Settings& settings);

  // Returns why the replica cannot start.
  std::string Open() { return store_.Open(); }
  // Starts all threads; they end with the process.
  void Start();
  // Offers another transport to those who connect, and tells connected ones to change.
  void Offer(Transport transport) { offered_ = transport; }

  Message Answer(const Message& request, Transport over, bool& is_data, bool& fell_back);

 private:
  void ServeRdmaLinks();
  void TakeLink(std::unique_ptr<Link> link);
  void Serve(Link& link);
  Message Greet(const std::string& wanted, bool& fell_back) const;
  Message Get(const std::string& key);
  Message Put(const std::string& key, const std::string& text);
  // Finds the newest value that a majority knows of. Returns false if there is no majority.
  // `agreed`: all of those that answered have that version.
  bool Newest(const std::string& key, Value& newest, bool& agreed);
  // Returns true if a majority stores the value.
  bool Spread(const std::string& key, const Value& value);
  std::string Status() const;
  bool HasFile(const char* name) const;
  size_t majority() const { return (peers_.size() + 1) / 2 + 1; }

  const Settings settings_;
  Store store_;
  std::vector<std::unique_ptr<Peer>> peers_;
  const uint64_t incarnation_;
  std::atomic<Transport> offered_;
  std::atomic<bool> rdma_listens_ = false;
  std::atomic<int> links_ = 0;
  std::array<std::atomic<int>, 2> data_links_{};  // by transport
  std::mutex count_mutex_;
  uint64_t last_count_ = 0;  // of a version that this replica made
};

}  // namespace kv
