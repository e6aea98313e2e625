// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/tunnel_hub.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>

namespace rocegw::sync {
namespace {

// As grpc::StatusCode, which this layer does not know.
constexpr int kDeadlineExceeded = 4;
constexpr int kInternal = 13;
constexpr int kUnavailable = 14;

TunnelResult NoTunnel(const std::string& gateway) {
  return {kUnavailable, "the agent of " + gateway + " is not connected to this controller", {}};
}

}  // namespace

TunnelHub::TunnelHub() : thread_([this] { Run(); }) {}

TunnelHub::~TunnelHub() {
  std::map<uint64_t, Waiting> left;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    left.swap(waiting_);
    for (auto& [name, tunnel] : tunnels_) tunnel.stream->Close(StreamEnd::kClosing);
    wake_.notify_all();
  }
  for (auto& [id, waiting] : left) waiting.done({kUnavailable, "the controller ends", {}});
  thread_.join();
}

std::vector<TunnelHub::Done> TunnelHub::TakeOf(const std::string& gateway) {
  std::vector<Done> orphans;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (at->second.gateway == gateway) {
      orphans.push_back(std::move(at->second.done));
      at = waiting_.erase(at);
    } else {
      ++at;
    }
  }
  return orphans;
}

TunnelHub::StreamId TunnelHub::Attach(const std::string& gateway,
                                      std::shared_ptr<TunnelStream> stream) {
  std::vector<Done> orphans;
  StreamId id = 0;
  {
    const std::lock_guard lock(mutex_);
    Tunnel& tunnel = tunnels_[gateway];
    if (tunnel.stream != nullptr) {
      tunnel.stream->Close(StreamEnd::kSuperseded);
      orphans = TakeOf(gateway);
    }
    id = tunnel.id = ++last_stream_;
    tunnel.stream = std::move(stream);
  }
  for (const Done& done : orphans) done(NoTunnel(gateway));
  return id;
}

void TunnelHub::OnAnswer(const std::string& gateway, StreamId id,
                         const fleet::v1::TunnelAnswer& answer) {
  Done done;
  TunnelResult result;
  {
    const std::lock_guard lock(mutex_);
    const auto tunnel = tunnels_.find(gateway);
    if (tunnel == tunnels_.end() || tunnel->second.id != id) return;
    // An answer that came too late, or one to another gateway's question.
    const auto at = waiting_.find(answer.id());
    if (at == waiting_.end() || at->second.gateway != gateway) return;
    Waiting& waiting = at->second;
    if (answer.code() == 0) waiting.parts.push_back(answer);
    const bool endless = waiting.parts.size() > kMostParts;
    if (answer.code() == 0 && answer.more() && !endless) return;
    result.code = endless ? kInternal : answer.code();
    result.message = endless ? "the answer has too many parts" : answer.message();
    if (result.code == 0) result.parts = std::move(waiting.parts);
    done = std::move(waiting.done);
    waiting_.erase(at);
  }
  done(std::move(result));
}

void TunnelHub::Detach(const std::string& gateway, StreamId id) {
  std::vector<Done> orphans;
  {
    const std::lock_guard lock(mutex_);
    const auto tunnel = tunnels_.find(gateway);
    if (tunnel == tunnels_.end() || tunnel->second.id != id) return;
    tunnels_.erase(tunnel);
    orphans = TakeOf(gateway);
  }
  for (const Done& done : orphans) done(NoTunnel(gateway));
}

void TunnelHub::Ask(const std::string& gateway, fleet::v1::TunnelQuestion question,
                    Clock::time_point deadline, Done done) {
  {
    const std::lock_guard lock(mutex_);
    const auto tunnel = tunnels_.find(gateway);
    if (tunnel != tunnels_.end() && !stopping_) {
      question.set_id(++last_question_);
      *question.mutable_deadline() = google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
          std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch())
              .count());
      waiting_[question.id()] = {gateway, deadline, std::move(done), {}};
      tunnel->second.stream->Send(question);
      wake_.notify_all();
      return;
    }
  }
  done(NoTunnel(gateway));
}

void TunnelHub::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Clock::time_point now = Clock::now();
    Clock::time_point next = now + std::chrono::hours(1);
    std::vector<Done> late;
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      if (at->second.deadline > now) {
        next = std::min(next, at->second.deadline);
        ++at;
        continue;
      }
      const auto tunnel = tunnels_.find(at->second.gateway);
      fleet::v1::TunnelQuestion cancel;
      cancel.set_id(at->first);
      cancel.set_cancel(true);
      if (tunnel != tunnels_.end()) tunnel->second.stream->Send(cancel);
      late.push_back(std::move(at->second.done));
      at = waiting_.erase(at);
    }
    if (!late.empty()) {
      lock.unlock();
      for (const Done& done : late) {
        done({kDeadlineExceeded, "the gateway did not answer in time", {}});
      }
      lock.lock();
      continue;
    }
    wake_.wait_until(lock, next);
  }
}

}  // namespace rocegw::sync
