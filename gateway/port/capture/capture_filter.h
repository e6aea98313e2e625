// SPDX-License-Identifier: Apache-2.0
// Which packets a capture takes: all, or those of some queue pairs and own addresses, which come
// and go while it runs; and of these those from and to one queue pair or peer. Workers ask, the
// control thread changes; its lock is only taken while the capture runs.
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
  // A packet's ends: here, and the other one.
  struct Ends {
    Qpn qpn;  // of this gateway's queue pair
    wire::Gid here;
    wire::Gid there;
  };

  // For the next capture. scoped: only queue pairs and addresses that are added.
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
