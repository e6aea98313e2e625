// SPDX-License-Identifier: Apache-2.0
#include "examples/kv_store/peer.h"

#include <utility>
#include <vector>

namespace kv {
namespace {

constexpr Milliseconds kPingEvery(500);
// RDMA is tried again after this time on TCP.
constexpr Milliseconds kTryAgainAfter(5000);
constexpr size_t kMostAtOnce = 256;

}  // namespace

bool Peer::Ask(const Message& request, Message& reply) {
  const std::lock_guard lock(mutex_);
  if (session_ == nullptr) return false;
  const bool answered = session_->Ask(request, reply);
  if (answered && !session_->moved()) return true;
  // A session that the replica leaves serves until another one is made.
  if (!answered) session_.reset();
  const std::lock_guard state_lock(state_mutex_);
  if (!answered) state_.transport = "down";
  renew_ = true;
  wanted_.notify_one();
  return answered;
}

bool Peer::Write(const std::string& key, const Value& value) {
  Message reply;
  const bool stored =
      Ask({.op = Op::kWrite, .version = value.version, .key = key, .value = value.text}, reply) &&
      reply.outcome == Outcome::kDone;
  if (!stored) {
    const std::lock_guard lock(state_mutex_);
    owed_.insert(key);
  }
  return stored;
}

Peer::State Peer::state() const {
  const std::lock_guard lock(state_mutex_);
  State state = state_;
  state.owed = owed_.size();
  return state;
}

void Peer::Keep() {
  while (true) {
    Renew();
    Message reply;
    if (Ask({.op = Op::kPing}, reply)) {
      bool other_process = false;
      {
        const std::lock_guard lock(state_mutex_);
        other_process = std::exchange(incarnation_, reply.version) != reply.version;
      }
      // A process that started may have lost its journal: everything is sent, and the newer version
      // stays.
      if (other_process) {
        for (std::string& key : store_.Keys()) {
          const std::lock_guard lock(state_mutex_);
          owed_.insert(std::move(key));
        }
      }
      SendOwed();
    }
    std::unique_lock lock(state_mutex_);
    wanted_.wait_for(lock, kPingEvery, [&] { return renew_; });
    renew_ = false;
  }
}

void Peer::Renew() {
  {
    const std::lock_guard lock(mutex_);
    const bool again = session_ != nullptr && session_->fell_back() &&
                       Clock::now() - connected_at_ > kTryAgainAfter;
    if (session_ != nullptr && !session_->moved() && !again) return;
  }
  auto session = Session::Connect(place_, std::nullopt, fallback_);
  if (session == nullptr) return;
  const std::lock_guard lock(mutex_);
  session_ = std::move(session);
  connected_at_ = Clock::now();
  const std::lock_guard state_lock(state_mutex_);
  state_.transport = WordOf(session_->transport());
  state_.fell_back = session_->fell_back();
}

void Peer::SendOwed() {
  std::vector<std::string> keys;
  {
    const std::lock_guard lock(state_mutex_);
    for (size_t i = 0; i < kMostAtOnce && !owed_.empty(); ++i)
      keys.push_back(std::move(owed_.extract(owed_.begin()).value()));
    if (!owed_.empty()) renew_ = true;
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto value = store_.Read(keys[i]);
    if (value.has_value() && Write(keys[i], *value)) continue;
    const std::lock_guard lock(state_mutex_);
    for (; i < keys.size(); ++i) owed_.insert(keys[i]);
  }
}

}  // namespace kv
