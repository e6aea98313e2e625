// SPDX-License-Identifier: Apache-2.0
// Packet filter of a capture: all packets, or those of listed queue pairs and own addresses, which
// may change during the capture; optionally limited to one queue pair or peer. Workers query, the
// control thread changes. Its lock is used only during a capture.
#pragma once

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

class CaptureFilter {
 public:
  // Local and remote end of a packet.
  struct Ends {
    Qpn qpn;  // queue pair of this gateway
    wire::Gid here;
    wire::Gid there;
  };

  // Prepares the next capture. `scoped`: only queue pairs and addresses that are added match.
  void Reset(bool scoped, Qpn qpn, const wire::Gid& peer) {
    const std::lock_guard lock(mutex_);
    scoped_ = scoped;
    qpn_ = qpn;
    peer_ = peer;
    qpns_.clear();
    addresses_.clear();
  }
  void Add(Qpn qpn) {
    const std::lock_guard lock(mutex_);
    qpns_.insert(qpn.value);
  }
  void Remove(Qpn qpn) {
    const std::lock_guard lock(mutex_);
    qpns_.erase(qpn.value);
  }
  void SetAddresses(std::vector<wire::Gid> addresses) {
    const std::lock_guard lock(mutex_);
    addresses_ = std::move(addresses);
  }

  // Returns true if the filter depends on the queue pair of a packet.
  bool SelectsQueuePairs() const {
    const std::lock_guard lock(mutex_);
    return scoped_ || qpn_.value != 0;
  }

  bool Wants(const Ends& ends) const {
    const std::lock_guard lock(mutex_);
    if (qpn_.value != 0 && ends.qpn != qpn_) return false;
    if (!peer_.IsZero() && ends.there != peer_) return false;
    return !scoped_ || qpns_.contains(ends.qpn.value) ||
           std::find(addresses_.begin(), addresses_.end(), ends.here) != addresses_.end();
  }

 private:
  mutable std::mutex mutex_;
  bool scoped_ = false;
  Qpn qpn_;         // 0: any
  wire::Gid peer_;  // zero: any
  std::unordered_set<uint32_t> qpns_;
  std::vector<wire::Gid> addresses_;
};

}  // namespace rocegw::port
