// SPDX-License-Identifier: Apache-2.0
// State of one gateway while its agent's stream is open: what it runs, what has changed since, and
// what may be sent now. At most one push is unanswered; later changes accumulate by name, so a slow
// gateway gets the newest state and not each one in between. Pure; one thread (the hub's lock).
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
  // Limit of the rejections that are kept of a report. If there are more, the next push is the
  // whole state.
  static constexpr size_t kMostRejections = 1024;

  // Starts with the state in the agent's first message: the first push is the whole state, unless
  // the gateway runs it already.
  NodeSession(std::string gateway, std::string store_uuid, const fleet::v1::Hello& hello,
              store::Revision now);

  // Marks objects as changed at this revision.
  void Touch(const std::set<std::string>& names, store::Revision revision);
  void TouchAll(store::Revision revision);
  // Makes the gateway follow this store, whatever it ran before.
  void Adopt(store::Revision revision);

  // Return if there is a next push, and if it is the whole state.
  bool has_next() const { return MaySend() && (full_ || !dirty_.empty()); }
  bool next_is_whole() const { return full_; }
  // Returns the parts of the next push, to be sent together; none: nothing to send, or an answer is
  // pending.
  std::vector<types::v1::Push> NextPush(const Fleet& fleet);
  // Sends objects that the host rejected again after a while, so that the gateway's rejection is up
  // to date. Returns true if there is something to send.
  bool RetryRejected(std::chrono::steady_clock::time_point now);
  // Returns false if the report answers no push. Then call NextPush.
  bool OnReport(const types::v1::PushReport& report);

  bool in_sync() const { return nonce_.empty() && !full_ && dirty_.empty() && !unadopted_; }
  // Returns true if the gateway follows another store, and keeps its state until this one is
  // adopted.
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
  std::string nonce_;  // nonce of the unanswered push; empty: none
  uint64_t pushes_ = 0;
  store::Revision desired_ = 0;
  store::Revision applied_ = 0;
  store::Revision base_ = 0;   // base revision of the next delta
  uint64_t hello_digest_ = 0;  // 0: unknown
  std::vector<types::v1::Rejection> rejections_;
  bool more_rejected_ = false;  // the newest report had more rejections than are kept
  std::optional<std::chrono::steady_clock::time_point>
      retry_at_;  // time to send rejected objects again
};

}  // namespace rocegw::sync
