// SPDX-License-Identifier: Apache-2.0
// What the controller knows of one gateway while its agent's stream is open: what runs there, what
// has changed since, and what may be sent now. At most one push is unanswered; what changes
// meanwhile gathers by name, so a gateway that answers slowly gets the newest state and not each
// one in between. Pure; one thread (the hub's lock).
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controlplane/sync/fleet_follower.h"
#include "rocegw/fleet/v1/node.pb.h"
#include "rocegw/types/v1/push.pb.h"

namespace rocegw::sync {

class NodeSession {
 public:
  // Nothing is known about what runs there but what the agent's first message says: the first push
  // is the whole state, unless the message says that this is what runs.
  NodeSession(std::string gateway, std::string store_uuid, const fleet::v1::Hello& hello,
              store::Revision now);

  // These objects are not what was sent, as of this revision.
  void Touch(const std::set<std::string>& names, store::Revision revision);
  void TouchAll(store::Revision revision);
  // This store is the fleet's, whatever ran there before.
  void Adopt(store::Revision revision);

  // Whether there is a next push, and whether it is the whole state.
  bool has_next() const { return MaySend() && (full_ || !dirty_.empty()); }
  bool next_is_whole() const { return full_; }
  // The parts of the next push, to be sent together; none: nothing to say, or an answer is awaited.
  std::vector<types::v1::Push> NextPush(const Fleet& fleet);
  // What the host did not allow it may allow now: from time to time it is sent again, so that what
  // the gateway says of it is not of the past. True: there is something to send.
  bool RetryRejected(std::chrono::steady_clock::time_point now);
  // False: it answers no push that was sent. What is to be done next is NextPush's to say.
  bool OnReport(const types::v1::PushReport& report);

  bool in_sync() const { return nonce_.empty() && !full_ && dirty_.empty() && !unadopted_; }
  // The gateway follows another store and keeps what it has until this one is adopted.
  bool unadopted() const { return unadopted_; }
  store::Revision desired_revision() const { return desired_; }
  store::Revision applied_revision() const { return applied_; }
  const std::vector<types::v1::Rejection>& rejections() const { return rejections_; }

 private:
  bool MaySend() const { return nonce_.empty() && (adopt_ || !unadopted_); }

  const std::string gateway_;
  const std::string store_uuid_;
  bool full_ = true;
  bool adopt_ = false;
  bool unadopted_ = false;
  std::set<std::string> dirty_;
  std::string nonce_;  // of the push that is not answered; empty: none
  uint64_t pushes_ = 0;
  store::Revision desired_ = 0;
  store::Revision applied_ = 0;
  store::Revision base_ = 0;   // of what the agent has: what a delta builds on
  uint64_t hello_digest_ = 0;  // 0: nothing to compare with
  std::vector<types::v1::Rejection> rejections_;
  std::optional<std::chrono::steady_clock::time_point> retry_at_;  // of what is rejected
};

}  // namespace rocegw::sync
