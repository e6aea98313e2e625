// SPDX-License-Identifier: Apache-2.0
// Hand-over of sessions to another session server, as between two processes: the successor has
// copies of the descriptors and reads the state.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gateway/hand_over/state_stream.h"
#include "gateway/session/hand_over/session_versions.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {

class SessionHandOver : public ::testing::Test {
 protected:
  static InheritedFds Copies(SessionHost& host) {
    OfferedFds offered;
    host.server->attach().OfferSessions(offered);
    InheritedFds copies;
    for (const OfferedFd& one : offered) copies.Add(one.kind, one.name, UniqueFd(::dup(one.fd)));
    return copies;
  }
  // Hands the sessions of `old_` over to a new host. Returns why they were refused; "": read.
  std::string HandOver() {
    std::vector<uint8_t> bytes;
    hand_over::StateStream out(bytes, ControlLoop::Now(), versions_);
    old_.server->HandOverFoundation(out);
    if (looks_) old_.server->attach().LookAtSessions(versions_);
    if (between_looks_) between_looks_();
    const bool ahead = session::SessionsGoAhead(versions_);
    if (ahead) old_.server->HandOverUnchanged(out);
    if (behind_looks_) behind_looks_();
    old_.server->attach().SetWatching(false);
    if (out.ok()) old_.server->HandOverNumbers(out);
    const size_t before = bytes.size();
    if (out.ok()) old_.server->HandOverSessions(out);
    if (!out.ok()) return out.failure();
    written_at_last_ = bytes.size() - before;
    InheritedFds copies = Copies(old_);
    if (drop_descriptor_) copies.Discard(*drop_descriptor_);
    session::Options options;
    options.awaits_state = true;
    fresh_ = std::make_unique<SessionHost>(2, options);
    if (configure_) configure_(*fresh_);
    fresh_->server->attach().SetWatching(false);
    fresh_->server->attach().Inherit(&copies);
    hand_over::StateStream in(bytes, ControlLoop::Now());
    fresh_->server->HandOverFoundation(in);
    if (in.ok() && ahead) fresh_->server->HandOverUnchanged(in);
    if (in.ok()) fresh_->server->HandOverNumbers(in);
    if (in.ok()) fresh_->server->HandOverSessions(in);
    fresh_->server->attach().Inherit(nullptr);
    if (!in.ok()) return in.failure();
    if (!in.at_end()) return "state is longer than what was read";
    fresh_->Settle();
    EXPECT_EQ(fresh_->server->attach().link_error(), 0);
    fresh_->server->attach().SetWatching(true);
    return "";
  }
  // The client's side of the daemon is the old host until it hands over.
  std::unique_ptr<TestClient> AttachToOld() {
    return std::make_unique<TestClient>([this] { (fresh_ ? *fresh_ : old_).Settle(); },
                                        ConnectTo(old_));
  }
  static UniqueFd ConnectTo(SessionHost& host) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    host.server->Attach(UniqueFd(ends[1]));
    return UniqueFd(ends[0]);
  }

  // The old host ends last: its end shuts connections down.
  SessionHost old_{2};
  std::unique_ptr<SessionHost> fresh_;
  hand_over::StateVersions versions_;
  std::optional<FdKind> drop_descriptor_;
  bool looks_ = false;  // hand over unchanged sessions ahead
  std::function<void()> between_looks_;
  std::function<void()> behind_looks_;
  std::function<void(SessionHost&)> configure_;
  size_t written_at_last_ = 0;  // bytes of the sessions that were not written ahead
};

}  // namespace rocegw::testing
