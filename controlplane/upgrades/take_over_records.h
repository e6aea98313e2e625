// SPDX-License-Identifier: Apache-2.0
// Audit records of take-overs of gateways, also of those that no upgrade ordered (systemctl
// reload). The store has the recorded number of each gateway, so that each take-over is recorded
// once, whichever controller looks. One thread, of the controller that drives upgrades.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "controlplane/store/store.h"
#include "rocegw/types/v1/gateway.pb.h"

namespace rocegw::upgrades {

// Reports of gateways, by "gateways/G".
using TakeOverReports = std::map<std::string, types::v1::TakeOverSummary>;

class TakeOverRecords {
 public:
  // `who`: host and process of this controller.
  TakeOverRecords(store::Store& store, std::string who) : store_(store), who_(std::move(who)) {}

  // Records what is new. `fence`: compare of the controller's term. After an error the rest is
  // recorded by a later call.
  void Record(const TakeOverReports& reports, const store::Compare& fence);
  // Reads the recorded numbers again in the next call: another controller may have written them.
  void Forget() { read_ = false; }

 private:
  struct Recorded {
    uint64_t count = 0;
    store::Revision revision = 0;
  };
  bool Read();

  store::Store& store_;
  const std::string who_;
  bool read_ = false;
  std::map<std::string, Recorded> recorded_;  // by "gateways/G"
};

}  // namespace rocegw::upgrades
